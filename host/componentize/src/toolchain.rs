//! Which Rust of this machine can build WebAssembly.
//!
//! Two kinds can: one with the target `wasm32-unknown-unknown` installed (rustup), and one with the source of the standard
//! library beside it and a WebAssembly linker (Debian's packages), which then builds the standard library too. The first
//! kind goes before the second, and the order of `PATH` decides within a kind.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::environment::clean_command;

/// The target that plugins are built for. No WASI: a plugin imports the contract and nothing else.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The oldest Rust that builds a guest.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// A Rust that can build a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The cargo that belongs to it.
    pub cargo: PathBuf,
    /// The release, as `1.96.0`.
    pub version: String,
    /// Where its libraries and sources are.
    pub sysroot: PathBuf,
    /// A linker to name; none where the toolchain has its own.
    pub linker: Option<PathBuf>,
    /// Where the standard library for the target comes from.
    pub std: Std,
}

/// Where the standard library for WebAssembly comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Std {
    /// It is installed.
    Installed,
    /// It is built with the plugin, from the source that the toolchain has. Takes about half a minute, once for each
    /// target folder.
    FromSource,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let std = match self.std {
            Std::Installed => "its standard library is installed",
            Std::FromSource => "its standard library is built from source",
        };
        write!(
            f,
            "rustc {} in {}; {std}",
            self.version,
            self.sysroot.display()
        )
    }
}

/// No Rust of this machine can build WebAssembly.
#[derive(Debug, thiserror::Error)]
#[error(
    "no Rust on this machine can build WebAssembly (rustc {OLDEST} or newer). Install one of:\n  \
     with rustup:  rustup target add {TARGET}\n  \
     on Debian:    apt-get install rustc-web cargo-web rust-web-src lld{}",
    looked_at(.rejected)
)]
pub struct NotFound {
    /// The compilers that were looked at.
    pub rejected: Vec<Rejected>,
}

/// A compiler that can't be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The compiler.
    pub rustc: PathBuf,
    /// What it lacks.
    pub reason: String,
}

fn looked_at(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return "\nThere is no rustc on PATH.".to_owned();
    }
    let lines = rejected
        .iter()
        .map(|r| format!("\n  {}: {}", r.rustc.display(), r.reason));
    format!("\nLooked at:{}", lines.collect::<String>())
}

/// The Rust to build plugins with: of those on `PATH`, the first with the target installed, else the first that can build
/// the standard library from source.
///
/// # Errors
///
/// [`NotFound`] says both ways to get one, and what each compiler that was looked at lacks.
pub fn find() -> Result<Toolchain, NotFound> {
    let path: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let mut found: Option<Toolchain> = None;
    let mut rejected = Vec::new();
    let mut seen = Vec::new();
    for rustc in path
        .iter()
        .map(|dir| dir.join("rustc"))
        .filter(|rustc| rustc.is_file())
    {
        let answers = match Answers::of(&rustc) {
            Ok(answers) => answers,
            Err(reason) => {
                rejected.push(Rejected { rustc, reason });
                continue;
            }
        };
        if seen.contains(&answers.sysroot) {
            continue;
        }
        seen.push(answers.sysroot.clone());
        match judge(&answers, &path) {
            Ok(toolchain) if toolchain.std == Std::Installed => return Ok(toolchain),
            Ok(toolchain) => found = found.or(Some(toolchain)),
            Err(reason) => rejected.push(Rejected { rustc, reason }),
        }
    }
    found.ok_or(NotFound { rejected })
}

/// What a compiler says of itself.
#[derive(Debug)]
struct Answers {
    version: String,
    host: String,
    sysroot: PathBuf,
}

impl Answers {
    fn of(rustc: &Path) -> Result<Self, String> {
        let verbose = ask(rustc, &["--version", "--verbose"])?;
        let line = |key: &str| {
            let value = verbose.lines().find_map(|line| line.strip_prefix(key));
            value
                .map(|value| value.trim().to_owned())
                .ok_or_else(|| format!("does not print its {key}"))
        };
        // Its folder is asked for as rustup resolves it, so that cargo and rustc can be run past rustup's proxies, which
        // would ask the environment and the folder again.
        let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?.trim());
        Ok(Self {
            version: line("release:")?,
            host: line("host:")?,
            sysroot,
        })
    }
}

fn ask(rustc: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(rustc)
        .args(args)
        .output()
        .map_err(|error| format!("does not run: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "does not run: {}",
            stderr
                .lines()
                .next()
                .unwrap_or("it fails without a message")
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| "does not print text".to_owned())
}

/// Whether the compiler can build a plugin, from its folders alone.
fn judge(answers: &Answers, path: &[PathBuf]) -> Result<Toolchain, String> {
    if older(&answers.version, OLDEST) {
        return Err(format!("is {}, older than {OLDEST}", answers.version));
    }
    let bin = answers.sysroot.join("bin");
    let (rustc, cargo) = (bin.join(executable("rustc")), bin.join(executable("cargo")));
    if !cargo.is_file() {
        return Err(format!("has no cargo at {}", cargo.display()));
    }
    let rustlib = answers.sysroot.join("lib").join("rustlib");
    let std = if rustlib.join(TARGET).join("lib").is_dir() {
        Std::Installed
    } else if rustlib.join("src/rust/library/Cargo.lock").is_file() {
        Std::FromSource
    } else {
        return Err(format!(
            "has neither the target {TARGET} nor the source of the standard library"
        ));
    };
    let own_linker = rustlib
        .join(&answers.host)
        .join("bin")
        .join(executable("rust-lld"));
    let linker = if own_linker.is_file() {
        None
    } else {
        Some(
            linker(path)
                .ok_or("has no WebAssembly linker (rust-lld or wasm-ld; Debian's package lld)")?,
        )
    };
    let (version, sysroot) = (answers.version.clone(), answers.sysroot.clone());
    Ok(Toolchain {
        rustc,
        cargo,
        version,
        sysroot,
        linker,
        std,
    })
}

fn executable(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// `rust-lld` or `wasm-ld` on the path; else the newest `wasm-ld-N`, which is how Debian names several versions.
fn linker(path: &[PathBuf]) -> Option<PathBuf> {
    let plain = ["rust-lld", "wasm-ld"].map(executable);
    let named = plain.iter().find_map(|name| {
        path.iter()
            .map(|dir| dir.join(name))
            .find(|file| file.is_file())
    });
    named.or_else(|| {
        let files = path
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flatten()
            .flatten();
        let numbered = files.filter_map(|file| {
            let number = file
                .file_name()
                .to_str()?
                .strip_prefix("wasm-ld-")?
                .parse::<u32>()
                .ok()?;
            file.path().is_file().then(|| (number, file.path()))
        });
        numbered.max().map(|(_, file)| file)
    })
}

fn older(version: &str, than: &str) -> bool {
    let numbers = |text: &str| {
        let release = text.split('-').next().unwrap_or_default();
        let mut parts = release
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    numbers(version) < numbers(than)
}

impl Toolchain {
    /// A command that runs this toolchain's cargo, clean of what an outer cargo has set.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = clean_command(&self.cargo);
        cargo.env("RUSTC", &self.rustc);
        if self.std == Std::FromSource {
            // Building the standard library is behind cargo's unstable flags, which a released cargo takes only so.
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        cargo
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn with(files: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for file in files {
                let file = dir.path().join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
            }
            Self(dir)
        }

        fn judge(&self, version: &str) -> Result<Toolchain, String> {
            let answers = Answers {
                version: version.to_owned(),
                host: "x86_64-unknown-linux-gnu".to_owned(),
                sysroot: self.0.path().to_owned(),
            };
            judge(&answers, &[self.0.path().join("bin")])
        }
    }

    const RUSTUP: &[&str] = &[
        "bin/rustc",
        "bin/cargo",
        "lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld",
        "lib/rustlib/wasm32-unknown-unknown/lib/libstd.rlib",
    ];
    const DEBIAN: &[&str] = &[
        "bin/rustc",
        "bin/cargo",
        "bin/wasm-ld-14",
        "lib/rustlib/src/rust/library/Cargo.lock",
    ];

    #[test]
    fn rustup_with_the_target_needs_nothing_else() {
        let toolchain = Machine::with(RUSTUP).judge("1.97.0").unwrap();
        assert_eq!((toolchain.std, toolchain.linker), (Std::Installed, None));
    }

    #[test]
    fn debian_builds_the_standard_library_with_the_linker_on_the_path() {
        let machine = Machine::with(DEBIAN);
        let toolchain = machine.judge("1.96.0").unwrap();
        assert_eq!(toolchain.std, Std::FromSource);
        assert_eq!(
            toolchain.linker,
            Some(machine.0.path().join("bin/wasm-ld-14"))
        );
    }

    #[test]
    fn the_newest_of_numbered_linkers_is_taken_and_a_plain_name_before_it() {
        let machine = Machine::with(&["bin/wasm-ld-9", "bin/wasm-ld-19", "bin/wasm-ld-14"]);
        let path = [machine.0.path().join("bin")];
        assert_eq!(linker(&path), Some(path[0].join("wasm-ld-19")));
        std::fs::write(path[0].join("wasm-ld"), "").unwrap();
        assert_eq!(linker(&path), Some(path[0].join("wasm-ld")));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |without: &str, files: &[&str]| {
            let files: Vec<_> = files
                .iter()
                .copied()
                .filter(|file| !file.contains(without))
                .collect();
            Machine::with(&files).judge("1.96.0").unwrap_err()
        };
        assert!(missing("wasm-ld", DEBIAN).contains("lld"));
        assert!(missing("Cargo.lock", DEBIAN).contains(TARGET));
        assert!(missing("bin/cargo", DEBIAN).contains("no cargo"));
        assert!(missing("wasm32", RUSTUP).contains(TARGET));
    }

    #[test]
    fn an_old_compiler_is_refused_by_its_version() {
        assert_eq!(
            Machine::with(RUSTUP).judge("1.63.0").unwrap_err(),
            format!("is 1.63.0, older than {OLDEST}")
        );
        assert!(Machine::with(RUSTUP).judge("1.100.0-nightly").is_ok());
    }

    #[test]
    fn the_error_says_both_ways_and_what_was_looked_at() {
        let rejected = vec![Rejected {
            rustc: "/opt/rustc".into(),
            reason: "is too plain".to_owned(),
        }];
        let message = NotFound { rejected }.to_string();
        for part in [
            "rustup target add wasm32-unknown-unknown",
            "rustc-web cargo-web rust-web-src lld",
            "is too plain",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}

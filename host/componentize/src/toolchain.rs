//! Finds a Rust toolchain on this machine that can build plugins.
//!
//! Two kinds can: toolchains with the target `wasm32-unknown-unknown` installed (rustup), and toolchains with the source of the standard
//! library and a WebAssembly linker (Debian's packages), which build the standard library as well. The first kind is preferred, and within
//! a kind the first on `PATH`.
//!
//! The build script of `tools/plugin-folders` also includes this file, so it imports no other module.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use semver::{Prerelease, Version, VersionReq};

/// The target that plugins are built for. It has no WASI, because a plugin may only import the contract.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The oldest Rust version that builds plugins.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// A Rust toolchain that can build plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    pub cargo: PathBuf,
    /// The version, such as `1.96.0`.
    pub version: String,
    /// The directory of its libraries and sources.
    pub sysroot: PathBuf,
    /// The linker to use. `None` if the toolchain includes one.
    pub linker: Option<PathBuf>,
    /// The source of the standard library for the target.
    pub std: Std,
}

/// The source of the standard library for WebAssembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Std {
    /// It is installed.
    Installed,
    /// It is built with the plugin, from the toolchain's source. This takes about half a minute, once per target directory.
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

/// No toolchain on this machine can build plugins.
#[derive(Debug, thiserror::Error)]
#[error(
    "no Rust on this machine can build WebAssembly (rustc {OLDEST} or newer). Install one of:\n  \
     with rustup:  rustup target add {TARGET}\n  \
     on Debian:    apt-get install rustc-web cargo-web rust-web-src lld{}",
    rejections(.rejected)
)]
pub struct NotFound {
    /// The compilers on `PATH` that cannot be used.
    pub rejected: Vec<Rejected>,
}

/// A compiler that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The compiler.
    pub rustc: PathBuf,
    pub reason: String,
}

fn rejections(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return "\nNo rustc was found on PATH.".to_owned();
    }
    let lines = rejected
        .iter()
        .map(|r| format!("\n  {}: {}", r.rustc.display(), r.reason));
    format!("\nThese cannot be used:{}", lines.collect::<String>())
}

/// Returns the first toolchain on `PATH` with the target installed, or else the first that can build the standard library from source.
///
/// # Errors
///
/// [`NotFound`] describes how to install a toolchain, and why each compiler on `PATH` cannot be used.
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

/// What a compiler prints about itself.
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
        // `rustc` may be a proxy of rustup, which selects a toolchain by the environment and the directory. Its answer names the selected
        // toolchain, whose cargo and rustc are then run directly.
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
        .map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "fails: {}",
            stderr.lines().next().unwrap_or("without a message")
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| "prints invalid UTF-8".to_owned())
}

/// Returns the toolchain if its version and directories show that it can build plugins, or else the reason why not.
fn judge(answers: &Answers, path: &[PathBuf]) -> Result<Toolchain, String> {
    check_version(&answers.version)?;
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

/// Returns `rust-lld` or `wasm-ld` on the path, or else the newest `wasm-ld-N`, which is how Debian names versions.
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

/// Checks that a compiler is new enough. As in cargo's check of `rust-version`, a pre-release counts as its release.
fn check_version(version: &str) -> Result<(), String> {
    let invalid = |error| format!("has an invalid version `{version}`: {error}");
    let mut release = Version::parse(version).map_err(invalid)?;
    release.pre = Prerelease::EMPTY;
    let supported = VersionReq::parse(&format!(">={OLDEST}")).map_err(invalid)?;
    if supported.matches(&release) {
        Ok(())
    } else {
        Err(format!("version {version} is older than {OLDEST}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The files of a toolchain.
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
    fn rustup_with_the_target_needs_no_linker() {
        let toolchain = Machine::with(RUSTUP).judge("1.97.0").unwrap();
        assert_eq!((toolchain.std, toolchain.linker), (Std::Installed, None));
    }

    #[test]
    fn debian_builds_the_standard_library() {
        let machine = Machine::with(DEBIAN);
        let toolchain = machine.judge("1.96.0").unwrap();
        assert_eq!(toolchain.std, Std::FromSource);
        assert_eq!(
            toolchain.linker,
            Some(machine.0.path().join("bin/wasm-ld-14"))
        );
    }

    #[test]
    fn newest_numbered_linker_is_used_after_plain_names() {
        let machine = Machine::with(&["bin/wasm-ld-9", "bin/wasm-ld-19", "bin/wasm-ld-14"]);
        let path = [machine.0.path().join("bin")];
        assert_eq!(linker(&path), Some(path[0].join("wasm-ld-19")));
        std::fs::write(path[0].join("wasm-ld"), "").unwrap();
        assert_eq!(linker(&path), Some(path[0].join("wasm-ld")));
    }

    #[test]
    fn missing_parts_are_named() {
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
    fn old_compilers_are_refused() {
        assert_eq!(
            Machine::with(RUSTUP).judge("1.63.0").unwrap_err(),
            format!("version 1.63.0 is older than {OLDEST}")
        );
        assert!(Machine::with(RUSTUP).judge("1.100.0-nightly").is_ok());
        assert!(Machine::with(RUSTUP).judge("new").is_err());
    }

    #[test]
    fn error_has_the_ways_to_install_a_toolchain_and_the_rejected_compilers() {
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

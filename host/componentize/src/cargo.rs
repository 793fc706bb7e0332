//! Runs cargo on a plugin's crate.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    environment::clean_command,
    error::BuildError,
    options::{Messages, Options},
    toolchain::{Std, TARGET, Toolchain},
};

/// Returns the canonical path of the Cargo.toml in a directory.
pub(crate) fn cargo_toml(crate_dir: &Path) -> Result<PathBuf, BuildError> {
    let manifest = crate_dir.join("Cargo.toml").canonicalize();
    manifest.map_err(|error| BuildError::NoCrate {
        dir: crate_dir.to_owned(),
        error,
    })
}

/// The cargo of a toolchain, with the crate that it runs on.
#[derive(Debug)]
pub(crate) struct Cargo<'a> {
    toolchain: &'a Toolchain,
    options: &'a Options,
    manifest: PathBuf,
}

impl<'a> Cargo<'a> {
    /// Returns the toolchain's cargo for the crate in a directory.
    pub(crate) fn new(
        crate_dir: &Path,
        toolchain: &'a Toolchain,
        options: &'a Options,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            toolchain,
            options,
            manifest: cargo_toml(crate_dir)?,
        })
    }

    /// The canonical path of the crate's Cargo.toml.
    pub(crate) fn manifest(&self) -> &Path {
        &self.manifest
    }

    /// Fetches all crates, so that every source directory exists and can be remapped.
    pub(crate) fn fetch(&self) -> Result<(), BuildError> {
        let mut command = self.command("fetch");
        command.args(["--target", TARGET]).args(self.std());
        self.run(command).map(drop)
    }

    /// Returns the output of `cargo metadata`, limited to what is built for the target.
    pub(crate) fn metadata(&self) -> Result<Vec<u8>, BuildError> {
        let mut command = self.command("metadata");
        command.args(["--format-version=1", "--filter-platform", TARGET]);
        self.run(command)
    }

    /// Builds the library as a module and returns cargo's messages. `flags` apply to every crate, `last` only to the plugin's own.
    pub(crate) fn build(
        &self,
        target_dir: &Path,
        profile: &[&str],
        flags: &[OsString],
        last: &[OsString],
    ) -> Result<Vec<u8>, BuildError> {
        let mut command = self.command("rustc");
        // Without an explicit crate type, cargo skips link-time optimization for a library that is also an rlib.
        command
            .args([
                "--release",
                "--lib",
                "--crate-type=cdylib",
                "--target",
                TARGET,
            ])
            .args(self.std());
        command
            .arg("--message-format=json-render-diagnostics")
            .arg("--target-dir")
            .arg(target_dir);
        command.args(
            profile
                .iter()
                .flat_map(|setting| ["--config".to_owned(), format!("profile.release.{setting}")]),
        );
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f".as_ref()));
        if let Some(linker) = &self.toolchain.linker {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command.arg("--").args(last);
        self.run(command)
    }

    fn std(&self) -> Option<&'static str> {
        (self.toolchain.std == Std::FromSource).then_some("-Zbuild-std=std,panic_abort")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = clean_command(&self.toolchain.cargo);
        command.env("RUSTC", &self.toolchain.rustc);
        if self.toolchain.std == Std::FromSource {
            // Building the standard library needs an unstable flag, which a stable cargo accepts only with this variable.
            command.env("RUSTC_BOOTSTRAP", "1");
        }
        command.arg(name).arg("--manifest-path").arg(&self.manifest);
        if self.options.locked {
            command.arg("--locked");
        }
        if let Some(dir) = self.manifest.parent() {
            command.current_dir(dir);
        }
        if self.options.messages == Messages::Show {
            command.stderr(Stdio::inherit());
        }
        command
    }

    fn run(&self, mut command: Command) -> Result<Vec<u8>, BuildError> {
        let cargo = || self.toolchain.cargo.clone();
        let output = command.output().map_err(|error| BuildError::Cargo {
            cargo: cargo(),
            error,
        })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(BuildError::Failed {
            manifest: self.manifest.clone(),
            status: output.status,
            output: String::from_utf8_lossy(&output.stderr)
                .trim_end()
                .to_owned(),
        })
    }
}

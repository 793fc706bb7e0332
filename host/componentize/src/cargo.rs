//! Cargo, run on a plugin's crate.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    build::{BuildError, Messages, Options},
    toolchain::{Std, TARGET, Toolchain},
};

/// One toolchain's cargo on one crate.
#[derive(Debug)]
pub(crate) struct Cargo<'a> {
    toolchain: &'a Toolchain,
    options: &'a Options,
    manifest: PathBuf,
}

impl<'a> Cargo<'a> {
    /// Cargo on the crate in that folder.
    pub(crate) fn on(
        crate_dir: &Path,
        toolchain: &'a Toolchain,
        options: &'a Options,
    ) -> Result<Self, BuildError> {
        let manifest = crate_dir.join("Cargo.toml").canonicalize();
        let manifest = manifest.map_err(|error| BuildError::NoCrate {
            dir: crate_dir.to_owned(),
            error,
        })?;
        Ok(Self {
            toolchain,
            options,
            manifest,
        })
    }

    /// The crate's Cargo.toml, without symbolic links on the way.
    pub(crate) fn manifest(&self) -> &Path {
        &self.manifest
    }

    /// Fetches all crates, so that every folder that holds sources is there and can be mapped to a name.
    pub(crate) fn fetch(&self) -> Result<(), BuildError> {
        let mut command = self.command("fetch");
        command.args(["--target", TARGET]).args(self.std());
        self.run(command).map(drop)
    }

    /// What cargo says of the workspace and of all that is built for the guest.
    pub(crate) fn metadata(&self) -> Result<Vec<u8>, BuildError> {
        let mut command = self.command("metadata");
        command.args(["--format-version=1", "--filter-platform", TARGET]);
        self.run(command)
    }

    /// Builds the library as a module; gives cargo's messages. `flags` go to every crate, `last` to the plugin's own.
    pub(crate) fn build(
        &self,
        target_dir: &Path,
        profile: &[&str],
        flags: &[OsString],
        last: &[OsString],
    ) -> Result<Vec<u8>, BuildError> {
        let mut command = self.command("rustc");
        // The crate type is named because cargo leaves out link-time optimization where a library is an rlib as well.
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
        let mut command = self.toolchain.cargo();
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

//! A plugin's crate becomes a component.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use cargo_metadata::Message;
use trainyard_model::manifest::{Manifest, PartsError};

use crate::{
    cargo::Cargo,
    component::{Component, ComponentError, componentize},
    sources::Sources,
    toolchain::{self, TARGET, Toolchain},
};

/// The profile that every plugin is built with, whatever its workspace says.
const PROFILE: &[&str] = &[
    "codegen-units=1",
    "debug=false",
    "debug-assertions=false",
    "incremental=false",
    "lto=\"fat\"",
    "opt-level=3",
    "panic=\"abort\"",
    "strip=\"symbols\"",
];

/// How to build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where cargo puts what it builds; `guest` in the crate's (or its workspace's) own target folder where none is given.
    pub target_dir: Option<PathBuf>,
    /// Fail where `Cargo.lock` is missing or would change.
    pub locked: bool,
    /// Where cargo's messages go.
    pub messages: Messages,
}

/// Where cargo's messages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Messages {
    /// To standard error, as they come.
    #[default]
    Show,
    /// Into the error, where there is one.
    Keep,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The plugin.
    pub component: Component,
    /// What it was built with.
    pub toolchain: Toolchain,
    /// Files and folders that decide the bytes, beside crates from a registry.
    pub sources: Vec<PathBuf>,
}

/// Why a crate does not become a component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No crate in the folder.
    #[error("{} is not a crate: its Cargo.toml can't be read: {error}", dir.display())]
    NoCrate {
        /// The folder.
        dir: PathBuf,
        /// Why it can't be read.
        #[source]
        error: io::Error,
    },
    /// A workspace without a package of its own.
    #[error("{} is the manifest of a workspace; give the folder of the plugin's crate", manifest.display())]
    NoPackage {
        /// The Cargo.toml.
        manifest: PathBuf,
    },
    /// A crate of another kind.
    #[error(
        "{package} is not a plugin: its Cargo.toml needs\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]"
    )]
    NotPlugin {
        /// The package.
        package: String,
    },
    /// Its manifest.json is wrong.
    #[error("{}: {error}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: PartsError,
    },
    /// No Rust to build it with.
    #[error(transparent)]
    Toolchain(#[from] toolchain::NotFound),
    /// Cargo does not run.
    #[error("{} does not run: {error}", cargo.display())]
    Cargo {
        /// Which cargo.
        cargo: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Cargo says of the workspace what can't be read.
    #[error("`cargo metadata` can't be read: {0}")]
    Metadata(#[source] cargo_metadata::Error),
    /// Cargo ends with an error.
    #[error("cargo fails on {} for {TARGET} ({status}){}{output}", manifest.display(), if output.is_empty() { "" } else { ":\n" })]
    Failed {
        /// The plugin's Cargo.toml.
        manifest: PathBuf,
        /// How cargo ended.
        status: ExitStatus,
        /// Its messages, unless they were shown.
        output: String,
    },
    /// Cargo ends well and names no module.
    #[error("cargo built no .wasm file of {package}")]
    NoModule {
        /// The package.
        package: String,
    },
    /// The module can't be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The module.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The module makes no plugin.
    #[error("{package} builds, but {error}")]
    Component {
        /// The package.
        package: String,
        /// Why not.
        #[source]
        error: ComponentError,
    },
}

/// The folder for guests beside what another cargo builds, if `CARGO_TARGET_DIR` names an absolute one: all guests share it, whatever
/// workspace they belong to. It outlives the `OUT_DIR` of a build script, since the first build of a guest takes long.
#[must_use]
pub fn target_dir_of_environment() -> Option<PathBuf> {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("guest"))
}

/// Builds the plugin in `crate_dir`. The same sources and toolchain give the same bytes, in whatever folder they are.
///
/// # Errors
///
/// No toolchain, no plugin crate, what cargo says, or what is wrong with the plugin's manifest.
pub fn build(crate_dir: &Path, options: &Options) -> Result<Built, BuildError> {
    check_manifest(crate_dir)?;
    let toolchain = toolchain::find()?;
    let cargo = Cargo::on(crate_dir, &toolchain, options)?;
    let sources = Sources::of(&cargo)?;
    let path = core_module(&cargo, &sources, &toolchain, options)?;
    let module = std::fs::read(&path).map_err(|error| BuildError::Read { path, error })?;
    let component = componentize(&module).map_err(|error| BuildError::Component {
        package: sources.package.name.to_string(),
        error,
    })?;
    Ok(Built {
        component,
        sources: sources.watched(),
        toolchain,
    })
}

/// Checks the crate's `manifest.json` before cargo takes its time. Cargo itself names the file if it is missing.
fn check_manifest(crate_dir: &Path) -> Result<(), BuildError> {
    let path = crate_dir.join("manifest.json");
    match std::fs::read(&path) {
        Ok(file) => {
            Manifest::check_file(&file).map_err(|error| BuildError::Manifest { path, error })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BuildError::Read { path, error }),
    }
}

/// The path of the module that cargo builds.
fn core_module(
    cargo: &Cargo<'_>,
    sources: &Sources,
    toolchain: &Toolchain,
    options: &Options,
) -> Result<PathBuf, BuildError> {
    let target_dir = options
        .target_dir
        .clone()
        .unwrap_or_else(|| sources.target_dir.join("guest"));
    let target_dir = std::path::absolute(&target_dir).map_err(|error| BuildError::Read {
        path: target_dir,
        error,
    })?;
    let flags = sources.flags(toolchain, &target_dir);
    let messages = cargo.build(&target_dir, PROFILE, &flags, &sources.last_flags())?;
    let module = Message::parse_stream(messages.as_slice()).find_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) if artifact.package_id == sources.package.id => {
            artifact
                .filenames
                .into_iter()
                .find(|file| file.extension() == Some("wasm"))
        }
        _ => None,
    });
    module.map(Into::into).ok_or_else(|| BuildError::NoModule {
        package: sources.package.name.to_string(),
    })
}

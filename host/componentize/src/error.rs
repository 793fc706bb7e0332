//! Errors of a build.

use std::{io, path::PathBuf, process::ExitStatus};

use trainyard_model::manifest::PartsError;

use crate::{
    component::ComponentError,
    toolchain::{self, TARGET},
};

/// An error that prevents building a crate as a component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The directory has no readable `Cargo.toml`.
    #[error(
        "{} is not a plugin's directory: it has no build.sh, and its Cargo.toml cannot be read: {error}",
        dir.display()
    )]
    NoCrate {
        /// The directory.
        dir: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The manifest is of a workspace without a root package.
    #[error("{} is the manifest of a workspace; pass the directory of the plugin's crate", manifest.display())]
    NoPackage {
        /// The Cargo.toml.
        manifest: PathBuf,
    },
    /// The crate is not a `cdylib`.
    #[error(
        "{package} is not a plugin: its Cargo.toml needs\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]"
    )]
    NotPlugin { package: String },
    /// The crate's manifest.json is invalid.
    #[error("{}: {error}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        error: PartsError,
    },
    /// No toolchain on this machine can build plugins.
    #[error(transparent)]
    Toolchain(#[from] toolchain::NotFound),
    /// Cargo cannot be started.
    #[error("cannot run {}: {error}", cargo.display())]
    Cargo {
        /// The path of cargo.
        cargo: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// `cargo metadata` failed, or its output is invalid.
    #[error("cannot read the crate's metadata: {0}")]
    Metadata(#[source] cargo_metadata::Error),
    /// Cargo failed.
    #[error("cargo failed on {} for {TARGET} ({status}){}{output}", manifest.display(), if output.is_empty() { "" } else { ":\n" })]
    Failed {
        /// The plugin's Cargo.toml.
        manifest: PathBuf,
        /// The exit status.
        status: ExitStatus,
        /// Cargo's messages, unless they were already shown.
        output: String,
    },
    /// Cargo succeeded but reported no module.
    #[error("cargo built no .wasm file for {package}")]
    NoModule { package: String },
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The module cannot be encoded as a plugin.
    #[error("{package} was built, but {error}")]
    Component {
        package: String,
        /// The cause.
        #[source]
        error: ComponentError,
    },
}

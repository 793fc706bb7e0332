use std::io;

use trainyard_model::{
    manifest::{ManifestError, SECTION},
    text::clean,
};
use wasmparser::BinaryReaderError;

use crate::compile::CompileError;

/// Why a file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// It can't be read.
    #[error("can't be read: {0}")]
    Read(#[from] io::Error),
    /// It is a folder, a device, a pipe.
    #[error("is {0}, not a file; a plugin is a `.wasm` file")]
    NotAFile(&'static str),
    /// It has no bytes.
    #[error("is empty")]
    Empty,
    /// It is too large.
    #[error("has more than {0} bytes, the most that a plugin may have")]
    TooLarge(u64),
    /// It is a core module.
    #[error(
        "is a core module, not a component; `trainyard plugin build` makes a component of a crate"
    )]
    CoreModule,
    /// It is compiled code.
    #[error(
        "is native code ({0}), which is never loaded; give the component that it was compiled from"
    )]
    NativeCode(&'static str),
    /// It is no WebAssembly, or damaged.
    #[error("is not a WebAssembly component, or is damaged: {0}")]
    Malformed(String),
    /// It has more of something than allowed.
    #[error("has more {what} than allowed: {allowed}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much is allowed.
        allowed: u64,
    },
    /// It imports what the contract does not have.
    #[error("imports what contract {} does not have: {}", trainyard_model::contract::VERSION, .0.join(", "))]
    Imports(Vec<String>),
    /// It exports something else than phases.
    #[error("exports what is not a phase of the contract: {}", .0.join(", "))]
    Exports(Vec<String>),
    /// The manifest and the exports disagree.
    #[error("exports the phases [{exported}], but its manifest names [{declared}]")]
    Phases {
        /// What it exports.
        exported: String,
        /// What it declares.
        declared: String,
    },
    /// It has no manifest, or several.
    #[error(
        "has {0} custom sections `{SECTION}` at its top level; a plugin has one, which the SDK's macro and `trainyard plugin build` make"
    )]
    Manifests(usize),
    /// Its manifest is refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Checking it costs too much, or can't be done.
    #[error(transparent)]
    Child(#[from] CompileError),
}

impl From<BinaryReaderError> for ScreenError {
    fn from(error: BinaryReaderError) -> Self {
        Self::Malformed(clean(&error.to_string()))
    }
}

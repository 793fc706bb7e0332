//! Why a plugin is not loaded.

use std::{io, process::ExitStatus};

use trainyard_model::{
    manifest::{ManifestError, SECTION},
    plugin::{Plugin, PluginError, PluginId},
    policy::{CallFailure, Phase},
    text::clean,
};
use wasmparser::BinaryReaderError;

/// A plugin file that is refused.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct LoadError {
    /// The file, or the name of a built-in plugin.
    pub file: String,
    /// Why.
    pub problem: Box<LoadProblem>,
}

/// Why a plugin file is refused.
#[derive(Debug, thiserror::Error)]
pub enum LoadProblem {
    /// It is no plugin.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// It is not compiled.
    #[error("plugin {id}: {problem}")]
    Compile {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: CompileError,
    },
    /// Its claims or configuration are refused.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It does not fit the contract.
    #[error("plugin {id}: {problem}")]
    Link {
        /// The plugin.
        id: PluginId,
        /// What does not fit.
        problem: LinkError,
    },
    /// It misbehaves while it is instantiated.
    #[error("plugin {id}: its instantiation failed: {cause}")]
    Instantiate {
        /// The plugin.
        id: PluginId,
        /// How.
        cause: Box<CallFailure>,
    },
    /// The compiled code does not load.
    #[error("plugin {id}: its compiled code does not load: {problem}")]
    Code {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: String,
    },
}

impl LoadProblem {
    /// The problem, for a message that names the plugin already.
    pub(crate) fn without_plugin(&self) -> String {
        match self {
            Self::Screen(_) | Self::Plugin(_) => self.to_string(),
            Self::Compile { problem, .. } => problem.to_string(),
            Self::Link { problem, .. } => problem.to_string(),
            Self::Instantiate { cause, .. } => format!("while it was instantiated it {cause}"),
            Self::Code { problem, .. } => problem.clone(),
        }
    }
}

pub(crate) fn not_compiled(plugin: &Plugin) -> impl FnOnce(CompileError) -> LoadProblem {
    let id = plugin.id.clone();
    move |problem| LoadProblem::Compile { id, problem }
}

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

/// Why a component is not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The child could not be run.
    #[error("the compiling process could not be run: {0}")]
    Child(#[from] io::Error),
    /// It took too long.
    #[error("takes more than {0} s to check and compile")]
    Time(u64),
    /// It took too much memory.
    #[error("takes more than {0} bytes of memory to check and compile")]
    Memory(u64),
    /// It becomes too large.
    #[error("has more than {0} bytes of compiled code")]
    Code(u64),
    /// The child's answer is not one.
    #[error("the compiling process returned an invalid answer")]
    Answer,
    /// The compiler refuses it.
    #[error("does not compile: {0}")]
    Refused(String),
    /// The child ended in another way.
    #[error("the compiling process ended with {0}")]
    Ended(ExitStatus),
}

/// Why a compiled component is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An import or export has other types than the contract says.
    #[error("it does not fit the contract: {0}")]
    Types(String),
    /// A phase of the manifest is not exported.
    #[error("its manifest names the phase {0}, which it does not export")]
    PhaseMissing(Phase),
}

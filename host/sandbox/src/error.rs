//! Why a plugin cannot be loaded.

use std::{io, process::ExitStatus};

use trainyard_model::{
    manifest::{ManifestError, SECTION},
    plugin::{CallFailure, Phase},
    plugin_info::{PluginError, PluginId, PluginInfo},
    text::clean,
};
use wasmparser::BinaryReaderError;

/// A plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct LoadError {
    /// The file, or the name of a built-in plugin.
    pub file: String,
    /// Why.
    pub problem: Box<LoadProblem>,
}

/// Why a plugin cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadProblem {
    /// The file is not a plugin.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// It could not be compiled.
    #[error("plugin {id}: {problem}{}", problem.way_out())]
    Compile {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: CompileError,
    },
    /// Its digest, claims or configuration are refused.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It does not match the contract.
    #[error("plugin {id}: {problem}")]
    Link {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: LinkError,
    },
    /// It could not be instantiated.
    #[error("plugin {id}: instantiation failed: {cause}")]
    Instantiate {
        /// The plugin.
        id: PluginId,
        /// Why.
        cause: Box<CallFailure>,
    },
    /// The compiled code could not be loaded.
    #[error("plugin {id}: cannot load the compiled code: {problem}")]
    Code {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: String,
    },
}

impl LoadProblem {
    /// The problem without the plugin, for messages that already name it.
    pub(crate) fn without_plugin(&self) -> String {
        match self {
            Self::Screen(_) | Self::Plugin(_) => self.to_string(),
            Self::Compile { problem, .. } => problem.to_string(),
            Self::Link { problem, .. } => problem.to_string(),
            Self::Instantiate { cause, .. } => format!("instantiation failed: {cause}"),
            Self::Code { problem, .. } => problem.clone(),
        }
    }
}

pub(crate) fn not_compiled(plugin: &PluginInfo) -> impl FnOnce(CompileError) -> LoadProblem {
    let id = plugin.id.clone();
    move |problem| LoadProblem::Compile { id, problem }
}

/// Why a file is not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is a directory, a device or a pipe.
    #[error("is {0}, not a file; pass a `.wasm` file")]
    NotAFile(&'static str),
    /// It is empty.
    #[error("is empty; pass a `.wasm` file")]
    Empty,
    /// It is too large.
    #[error("exceeds the limit of {0} bytes for a plugin")]
    TooLarge(u64),
    /// It is a core module.
    #[error("is a core module, not a component; build it with `trainyard plugin build`")]
    CoreModule,
    /// It is compiled code.
    #[error(
        "is native code ({0}), which is never loaded; pass the component that it was compiled from"
    )]
    NativeCode(&'static str),
    /// It is not valid WebAssembly.
    #[error("is not a valid WebAssembly component: {0}")]
    Malformed(String),
    /// It exceeds a limit.
    #[error("has more than {allowed} {what}, the limit for a plugin")]
    TooMuch {
        /// What is limited.
        what: &'static str,
        /// The limit.
        allowed: u64,
    },
    /// It has imports that the contract does not have.
    #[error("has imports that contract {} does not have: {}", trainyard_model::contract::VERSION, .0.join(", "))]
    Imports(Vec<String>),
    /// It has exports that are not phases.
    #[error("has exports that are not phases of the contract: {}", .0.join(", "))]
    Exports(Vec<String>),
    /// The manifest declares other phases than it exports.
    #[error("exports the phases [{exported}], but its manifest declares [{declared}]")]
    Phases {
        /// What it exports.
        exported: String,
        /// What it declares.
        declared: String,
    },
    /// It has no manifest, or several.
    #[error(
        "has {0} custom sections `{SECTION}` at the top level, but must have one; build it with `trainyard plugin build`"
    )]
    Manifests(usize),
    /// Its manifest is not valid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It could not be checked within the limits.
    #[error(transparent)]
    Child(#[from] CompileError),
}

impl From<BinaryReaderError> for ScreenError {
    fn from(error: BinaryReaderError) -> Self {
        Self::Malformed(clean(&error.to_string()))
    }
}

/// Why a component could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The compiler process could not be started.
    #[error("cannot start the compiler process: {0}")]
    Child(#[from] io::Error),
    /// It took too long.
    #[error("took longer than {0} s to check and compile")]
    Time(u64),
    /// It took too much memory.
    #[error("took more than {0} bytes of memory to check and compile")]
    Memory(u64),
    /// The compiled code is too large.
    #[error("exceeds the limit of {0} bytes of compiled code")]
    Code(u64),
    /// The compiler process returned an invalid answer.
    #[error("the compiler process returned an invalid answer")]
    Answer,
    /// The compiler rejected it.
    #[error("does not compile: {0}")]
    Refused(String),
    /// The compiler process failed.
    #[error("the compiler process failed: {status}{}", last_words(.message))]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The beginning of what it wrote to its standard error.
        message: String,
    },
}

impl CompileError {
    /// What an operator can do about it.
    const fn way_out(&self) -> &'static str {
        match self {
            Self::Time(_) => "; raise `compile.seconds` in its PolicyPlugin",
            Self::Memory(_) => "; raise `compile.memoryBytes` in its PolicyPlugin",
            _ => "",
        }
    }
}

/// What a process wrote before it failed, if anything.
fn last_words(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

/// Why a compiled component cannot be linked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An import or export has a type that differs from the contract.
    #[error("does not match the contract: {0}")]
    Types(String),
    /// A phase of the manifest is not exported.
    #[error("its manifest declares the phase {0}, which it does not export")]
    PhaseMissing(Phase),
}

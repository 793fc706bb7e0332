//! Why a plugin is not loaded.

use trainyard_model::{
    plugin::{Plugin, PluginError, PluginId},
    policy::CallFailure,
};

use crate::{compile::CompileError, policy::LinkError, screen::ScreenError};

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

//! Why a plugin is not loaded.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use trainyard_api::Location;
use trainyard_model::plan::PlanError;
use trainyard_render::{Declared, SkippedPlugin};
use trainyard_sandbox::LoadError;

use crate::{
    finding::{Finding, Parts},
    output,
    policy::PluginContent,
};

/// A plugin that is not loaded.
#[derive(Debug, Error)]
pub(super) enum Refused {
    /// It is invalid, or the operator's settings refuse it.
    #[error("{error}")]
    Load {
        origin: Origin,
        /// Its manifest's declaration. `None` if the manifest cannot be read.
        declared: Option<Declared>,
        /// The cause.
        error: LoadError,
    },
    /// Another plugin has the same name.
    #[error("{second} has the same name `{name}` as {first}; plugin names must be unique")]
    SameName {
        name: String,
        /// The origin of the plugin that is loaded.
        first: Origin,
        /// The origin of the plugin that is not loaded.
        second: Origin,
    },
    /// It conflicts with other plugins.
    #[error("{origin} is skipped: {error}")]
    Conflict {
        origin: Origin,
        /// Its manifest's declaration.
        declared: Declared,
        /// The cause.
        error: PlanError,
    },
    /// A PolicyPlugin of another name has its file as source.
    #[error(
        "{place}: {origin} is the plugin `{name}`, and not `{wanted}`; rename the PolicyPlugin, or correct its source"
    )]
    WrongName {
        place: String,
        origin: Origin,
        name: String,
        wanted: String,
    },
    /// The source of a PolicyPlugin decides which plugin has its name.
    #[error(
        "{place}: decides which plugin has the name `{name}`, so {origin} is not loaded; rename the plugin, or remove the file"
    )]
    Decided {
        place: String,
        origin: Origin,
        name: String,
    },
    /// The same file was passed before.
    #[error("the plugin file {} is passed twice; pass it once", output::path(.0))]
    SameFile(PathBuf),
}

impl Finding for Refused {
    fn parts(&self) -> Parts {
        match self {
            Self::Load {
                origin: Origin::File(_) | Origin::Pulled { .. },
                error,
                ..
            } => Parts::at(&Location::file(error.file.as_str()), &error.problem),
            _ => Parts::of(self),
        }
    }
}

impl Refused {
    /// Returns the file, or that it is a built-in plugin.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Load { error, .. } => error.file.clone(),
            Self::SameName { second: origin, .. }
            | Self::WrongName { origin, .. }
            | Self::Decided { origin, .. }
            | Self::Conflict { origin, .. } => match origin {
                Origin::BuiltIn => origin.to_string(),
                Origin::File(file) => output::path(file),
                Origin::Pulled { reference, .. } => output::path(Path::new(reference)),
            },
            Self::SameFile(file) => output::path(file),
        }
    }

    /// Returns its manifest's declaration, if it is known and no loaded plugin replaces it.
    pub(super) fn declared(&self) -> Option<&Declared> {
        match self {
            Self::Load { declared, .. } => declared.as_ref(),
            Self::Conflict { declared, .. } => Some(declared),
            Self::SameName { .. }
            | Self::WrongName { .. }
            | Self::Decided { .. }
            | Self::SameFile(_) => None,
        }
    }

    /// Returns the plugin for the errors of TrainJobs that need it. `None` if a loaded plugin replaces it, or another one
    /// should have its name.
    pub(super) fn skipped(&self) -> Option<SkippedPlugin> {
        if matches!(
            self,
            Self::SameName { .. }
                | Self::WrongName { .. }
                | Self::Decided { .. }
                | Self::SameFile(_)
        ) {
            return None;
        }
        Some(SkippedPlugin {
            declared: self.declared().cloned(),
            why: self.to_string(),
            is_disabled: false,
        })
    }
}

/// The origin of a plugin.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// This program.
    BuiltIn,
    File(PathBuf),
    /// A registry, or the store.
    Pulled {
        reference: String,
        component: Arc<[u8]>,
    },
}

impl From<&PluginContent> for Origin {
    fn from(content: &PluginContent) -> Self {
        match content.clone() {
            PluginContent::File(path) => Self::File(path),
            PluginContent::Pulled {
                reference,
                component,
            } => Self::Pulled {
                reference,
                component,
            },
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("the built-in plugin"),
            Self::File(path) => write!(f, "the plugin file {}", output::path(path)),
            Self::Pulled { reference, .. } => {
                write!(f, "the plugin {}", output::path(Path::new(reference)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_cannot_control_a_terminal() {
        let path = || PathBuf::from("/plugins/a\u{1b}[2J\u{202e}\n.wasm");
        let origin = Origin::File(path());
        let same_name = Refused::SameName {
            name: "a".to_owned(),
            first: origin.clone(),
            second: origin.clone(),
        };
        let texts = [
            origin.to_string(),
            same_name.to_string(),
            same_name.file(),
            Refused::SameFile(path()).to_string(),
            Refused::SameFile(path()).file(),
        ];
        for text in texts {
            assert!(
                text.contains("/plugins/a\\u{1b}[2J\\u{202e} .wasm"),
                "{text:?}"
            );
        }
    }
}

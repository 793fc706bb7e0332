//! What keeps a plugin from being loaded.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use thiserror::Error;
use trainyard_model::{plan::PlanError, text::clean};
use trainyard_render::{Declared, SkippedPlugin};
use trainyard_sandbox::LoadError;

/// A plugin that is not loaded.
#[derive(Debug, Error)]
pub(super) enum Refused {
    /// It is not in order, or not what the operator allows.
    #[error("{error}")]
    Load {
        /// What its manifest says, where it could be read.
        declared: Option<Declared>,
        /// Why.
        error: LoadError,
    },
    /// Another one has its name.
    #[error("{second} has the same name `{name}` as {first}; plugin names must be unique")]
    Twice {
        /// The name.
        name: String,
        /// Where the one that stays comes from.
        first: Origin,
        /// Where this one comes from.
        second: Origin,
    },
    /// It can't run beside the others.
    #[error("{origin} is left out: {error}")]
    Conflict {
        /// Where it comes from.
        origin: Origin,
        /// What its manifest says.
        declared: Declared,
        /// Why not.
        error: PlanError,
    },
    /// The same file was given before.
    #[error("the plugin file {} is given twice: give it once", shown(.0))]
    GivenTwice(PathBuf),
}

impl Refused {
    /// The file, or that it is a built-in plugin.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Load { error, .. } => error.file.clone(),
            Self::Twice { second: origin, .. } | Self::Conflict { origin, .. } => match origin {
                Origin::BuiltIn => origin.to_string(),
                Origin::File(file) => shown(file),
            },
            Self::GivenTwice(file) => shown(file),
        }
    }

    /// The plugin's name, where it is known.
    pub(super) fn plugin(&self) -> Option<&str> {
        match self {
            Self::Load { declared, .. } => Some(&declared.as_ref()?.name),
            Self::Twice { name, .. } => Some(name),
            Self::Conflict { declared, .. } => Some(&declared.name),
            Self::GivenTwice(_) => None,
        }
    }

    /// What TrainJobs have to know of it; nothing where the one that is loaded does its work.
    pub(super) fn skipped(&self) -> Option<SkippedPlugin> {
        let declared = match self {
            Self::Load { declared, .. } => declared.clone(),
            Self::Conflict { declared, .. } => Some(declared.clone()),
            Self::Twice { .. } | Self::GivenTwice(_) => return None,
        };
        Some(SkippedPlugin {
            declared,
            why: self.to_string(),
            is_disabled: false,
        })
    }
}

/// Where a plugin comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// It is part of this program.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("the built-in plugin"),
            Self::File(path) => write!(f, "the plugin file {}", shown(path)),
        }
    }
}

/// A file's name as text: whoever may write to a folder of plugins chooses it, control characters included.
pub(super) fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_can_not_steer_a_terminal() {
        let path = || PathBuf::from("/plugins/a\u{1b}[2J\u{202e}\n.wasm");
        let origin = Origin::File(path());
        let twice = Refused::Twice {
            name: "a".to_owned(),
            first: origin.clone(),
            second: origin.clone(),
        };
        let texts = [
            origin.to_string(),
            twice.to_string(),
            twice.file(),
            Refused::GivenTwice(path()).to_string(),
            Refused::GivenTwice(path()).file(),
        ];
        for text in texts {
            assert!(
                text.contains("/plugins/a\\u{1b}[2J\\u{202e} .wasm"),
                "{text:?}"
            );
        }
    }
}

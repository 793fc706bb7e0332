//! What a new version of a plugin changes, and whom it breaks (docs/write-a-plugin.md, "Versions").

mod manifest;
mod schema;
mod version;

use std::fmt;

use serde::Serialize;

pub(crate) use self::{
    manifest::changes,
    version::{VersionProblem, version_problem},
};

/// What one version of a plugin declares and another does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The declaration.
    pub(crate) what: String,
    /// Whom the change breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) breaks: Option<Breaks>,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChangeKind {
    Added,
    Removed,
    Changed,
}

/// Who has to change something before the new version can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Breaks {
    /// Operators, in PolicyPlugins.
    PolicyPlugins,
    /// Operators, by a newer release of Trainyard.
    Hosts,
    /// Authors of runtimes.
    Runtimes,
    /// Authors of TrainJobs.
    TrainJobs,
}

impl Change {
    const fn new(kind: ChangeKind, what: String, breaks: Option<Breaks>) -> Self {
        Self { kind, what, breaks }
    }

    /// Returns the change of a declaration that only one of two versions has.
    const fn one_sided(is_new: bool, what: String, breaks: Option<Breaks>) -> Self {
        let kind = match is_new {
            true => ChangeKind::Added,
            false => ChangeKind::Removed,
        };
        Self::new(kind, what, breaks)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            ChangeKind::Added => '+',
            ChangeKind::Removed => '-',
            ChangeKind::Changed => '~',
        };
        write!(f, "{sign} {}", self.what)?;
        match self.breaks {
            Some(breaks) => write!(f, " (breaks {breaks})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Breaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PolicyPlugins => "PolicyPlugins",
            Self::Hosts => "older releases of Trainyard",
            Self::Runtimes => "runtimes",
            Self::TrainJobs => "TrainJobs",
        })
    }
}

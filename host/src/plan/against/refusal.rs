//! Why plugins would be refused after a change.

use serde::Serialize;
use trainyard_model::{
    claims::ClaimError,
    plan::{PlanError, SharedPath},
    plugin_info::PluginError,
};

/// A reason why a plugin would be refused.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(super) enum Refusal {
    /// A claim is not granted.
    Grant { path: String, message: String },
    /// Two plugins write the same paths.
    Conflict {
        first: String,
        second: String,
        paths: Vec<SharedWrite>,
        message: String,
    },
    /// Plugins depend on each other in a cycle.
    Cycle {
        plugins: Vec<String>,
        message: String,
    },
    /// Another reason.
    Other { message: String },
}

/// A path that two plugins write.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SharedWrite {
    place: String,
    first_claim: String,
    second_claim: String,
}

impl SharedWrite {
    fn of(path: &SharedPath) -> Self {
        Self {
            place: path.place.clone(),
            first_claim: path.first_claim.clone(),
            second_claim: path.second_claim.clone(),
        }
    }
}

impl Refusal {
    /// Returns another reason.
    pub(super) fn other(message: &str) -> Self {
        Self::Other {
            message: message.to_owned(),
        }
    }

    /// Returns the reason in words.
    pub(super) fn message(&self) -> &str {
        match self {
            Self::Grant { message, .. }
            | Self::Conflict { message, .. }
            | Self::Cycle { message, .. }
            | Self::Other { message } => message,
        }
    }

    /// Returns the reasons why the settings refuse a plugin.
    pub(super) fn all_of(refused: &PluginError) -> Vec<Self> {
        let of_claim = |error: &ClaimError| {
            let message = format!("plugin {}: {error}", refused.plugin());
            match error {
                ClaimError::NotGranted { path, .. } | ClaimError::NodeSetNotGranted { path } => {
                    Self::Grant {
                        path: path.clone(),
                        message,
                    }
                }
                ClaimError::TooMany(_) | ClaimError::Impossible { .. } => Self::Other { message },
            }
        };
        match refused {
            PluginError::Claims { errors, .. } => errors.iter().map(of_claim).collect(),
            PluginError::Disabled(_)
            | PluginError::Digest { .. }
            | PluginError::OperatorConfig { .. } => vec![Self::Other {
                message: refused.to_string(),
            }],
        }
    }
}

impl From<&PlanError> for Refusal {
    fn from(error: &PlanError) -> Self {
        let message = error.to_string();
        match error {
            PlanError::Conflict {
                first,
                second,
                shared,
                ..
            } => Self::Conflict {
                first: first.to_string(),
                second: second.to_string(),
                paths: shared.listed.iter().map(SharedWrite::of).collect(),
                message,
            },
            PlanError::Cycle { cycle, .. } => Self::Cycle {
                plugins: cycle.iter().map(|edge| edge.first.to_string()).collect(),
                message,
            },
            PlanError::SameName { .. }
            | PlanError::TooMany { .. }
            | PlanError::NodeSets { .. }
            | PlanError::SameSwitch { .. }
            | PlanError::AlwaysExcluded { .. }
            | PlanError::Excluded { .. } => Self::Other { message },
        }
    }
}

//! The TrainJobs that run without a plugin that is otherwise always active.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For which TrainJobs a plugin that is always active is disabled, and whether TrainJobs may disable it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exemptions {
    /// The TrainJobs for which the operator disables it.
    #[serde(default)]
    pub disabled_for: DisabledFor,
    /// Whether a TrainJob may disable it for itself.
    #[serde(default)]
    pub train_jobs_may_disable: bool,
}

impl Exemptions {
    /// Whether the plugin is active for every TrainJob.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The TrainJobs for which the operator disables a plugin: those of any of these namespaces and of any of these runtimes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DisabledFor {
    /// Namespaces.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    /// Runtimes: `ClusterTrainingRuntime/NAME`, or `TrainingRuntime/NAMESPACE/NAME`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub runtimes: BTreeSet<String>,
}

impl DisabledFor {
    /// Whether it has no TrainJobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.runtimes.is_empty()
    }
}

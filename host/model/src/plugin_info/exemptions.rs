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
    pub disabled_for: JobSelector,
    /// The only TrainJobs for which the operator enables it; empty for all.
    // Not written if empty, so that the digests of plans without it are those of earlier releases.
    #[serde(default, skip_serializing_if = "JobSelector::is_empty")]
    pub enabled_for: JobSelector,
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

/// TrainJobs that the operator selects: those of any of these namespaces and of any of these runtimes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobSelector {
    /// Namespaces.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    /// Runtimes: `ClusterTrainingRuntime/NAME`, or `TrainingRuntime/NAMESPACE/NAME`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub runtimes: BTreeSet<String>,
}

impl JobSelector {
    /// Whether it selects no TrainJobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.runtimes.is_empty()
    }

    /// Returns the selected namespaces and runtimes, in words.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let namespaces = self.namespaces.iter();
        let namespaces = namespaces.map(|namespace| format!("namespace {namespace}"));
        namespaces.chain(self.runtimes.iter().cloned())
    }
}

//! The TrainJob as plugins see it.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    facts::{Facts, HostFactTexts},
    lookup::Requester,
    names::short_hash,
    record::Accelerators,
};

/// The TrainJob and what resolve derived from its runtime. Plugins cannot change it.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.uid`; empty if the TrainJob is not in a cluster.
    pub uid: Arc<str>,
    /// `spec.suspend`.
    pub suspended: bool,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// The runtime.
    pub runtime: RuntimeRef,
    /// The effective number of nodes, never 0.
    pub nodes: u32,
    /// The number of processes per node, if the TrainJob or the runtime sets one.
    pub processes_per_node: Option<u32>,
    /// The TrainJob's `spec`.
    pub spec: Arc<Value>,
    /// Which extended resources are accelerators.
    pub accelerators: Accelerators,
    /// The operator's facts.
    pub facts: Facts,
    /// The host's own facts, apart from its version.
    pub host_facts: HostFactTexts,
}

/// The runtime that a TrainJob names.
#[derive(Clone, Debug, Default)]
pub struct RuntimeRef {
    /// `TrainingRuntime` or `ClusterTrainingRuntime`.
    pub kind: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
}

impl Job {
    /// Returns the UID. That of a TrainJob that is not in a cluster is derived from its namespace and name.
    #[must_use]
    pub fn uid(&self) -> Cow<'_, str> {
        if !self.uid.is_empty() {
            return Cow::Borrowed(&self.uid);
        }
        let hex = short_hash(
            &["trainyard.dev/offline-uid", &self.namespace, &self.name],
            32,
        );
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        let parts = [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ];
        Cow::Owned(parts.join("-"))
    }
}

impl<'a> From<&'a Job> for Requester<'a> {
    fn from(job: &'a Job) -> Self {
        Self {
            name: &job.name,
            uid: Some(&*job.uid).filter(|uid| !uid.is_empty()),
        }
    }
}

//! The plugin's configuration in a runtime and in its PolicyPlugin.

use trainyard_sdk::{
    Config,
    json::{object, quoted},
};

/// `podGroupPolicy.plugin.config` of a runtime.
#[derive(Config, Debug)]
pub(crate) struct QueueConfig {
    /// The queue, which has to exist.
    #[config(min_length = 1, max_length = 253)]
    pub(crate) queue: String,
    /// Whether other work can preempt the pods. Without it, KAI decides by the priority.
    pub(crate) preemptible: Option<bool>,
    /// Where KAI places the pods in relation to each other.
    pub(crate) topology: Option<Topology>,
}

/// A constraint on the place of the pods.
#[derive(Config, Debug)]
pub(crate) struct Topology {
    /// The name of the Topology, an object of KAI.
    #[config(min_length = 1)]
    pub(crate) name: String,
    /// The level within which the pods have to be, such as `topology.kubernetes.io/zone`.
    #[config(min_length = 1)]
    pub(crate) required: Option<String>,
    /// The level within which they are if possible.
    #[config(min_length = 1)]
    pub(crate) preferred: Option<String>,
}

/// The operator's configuration.
#[derive(Config, Debug)]
pub(crate) struct ClusterConfig {
    /// The name under which KAI runs.
    #[config(default = "kai-scheduler", min_length = 1, max_length = 253)]
    pub(crate) scheduler_name: String,
}

impl QueueConfig {
    /// Returns the PodGroup's `preemptibility`.
    pub(crate) fn preemptibility(&self) -> Option<String> {
        self.preemptible.map(|preemptible| match preemptible {
            true => quoted("preemptible"),
            false => quoted("non-preemptible"),
        })
    }

    /// Returns the PodGroup's `topologyConstraint`.
    pub(crate) fn topology(&self) -> Option<String> {
        let topology = self.topology.as_ref()?;
        let levels = [
            ("topology", Some(&topology.name)),
            ("requiredTopologyLevel", topology.required.as_ref()),
            ("preferredTopologyLevel", topology.preferred.as_ref()),
        ];
        let levels = levels.into_iter();
        Some(object(
            levels.filter_map(|(key, level)| Some((key, quoted(level?)))),
        ))
    }
}

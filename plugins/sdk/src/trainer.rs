//! The container that runs a TrainJob's command and its settings, for policies of frameworks.

use crate::{
    Failure,
    contract::{Container, Context, Job, PodSet},
    paths::REPLICATED_JOBS,
};

/// The ancestor label's value on pods that run a TrainJob's command.
pub const TRAINER: &str = "trainer";

/// The name of the container that runs the command.
pub const NODE: &str = "node";

/// The field of a TrainJob that sets the number of processes per node.
pub const PROCESSES: &str = "spec.trainer.numProcPerNode";

impl Context {
    /// Returns a pod set as the runtime and the TrainJob made it, before any plugin wrote to it. Reads of it need no claim, and do not affect
    /// the order of plugins. None if there is no pod set of its name.
    #[must_use]
    pub fn base_of(&self, pod_set: &PodSet) -> Option<PodSet> {
        self.base().pod_set(&pod_set.name())
    }

    /// Returns the container that trains, with its pod set: the container `node` of the first pod set with the trainer label.
    ///
    /// # Errors
    /// The runtime has no such container, which `policy` needs.
    pub fn trainer(&self, policy: &str) -> Result<(PodSet, Container), Failure> {
        let pod_set = self.info().with_ancestor(TRAINER).into_iter().next();
        let found = pod_set.and_then(|set| set.container(NODE).map(|node| (set, node)));
        found.ok_or_else(|| {
            let message = format!(
                "{policy} needs a container `{NODE}` in a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`"
            );
            Failure::from(message).at(REPLICATED_JOBS)
        })
    }
}

impl Job {
    /// Returns where the number of [`Self::nodes`] is set: in the TrainJob or in the runtime. Reads `job[/trainer/numNodes]`.
    #[must_use]
    pub fn nodes_path(&self) -> String {
        let path = match self.spec().kind("/trainer/numNodes") {
            Some(_) => "spec.trainer.numNodes",
            None => "spec.mlPolicy.numNodes",
        };
        path.to_owned()
    }

    /// Returns where the number of [`Self::processes_per_node`] is set: in the TrainJob, or in the runtime's block of `policy`. Reads
    /// `job[/trainer/numProcPerNode]`.
    #[must_use]
    pub fn processes_path(&self, policy: &str) -> String {
        match self.spec().kind("/trainer/numProcPerNode") {
            Some(_) => PROCESSES.to_owned(),
            None => format!("spec.mlPolicy.{policy}.numProcPerNode"),
        }
    }
}

//! The rendezvous of the nodes of a TrainJob, for policies whose first node coordinates the others.

use crate::{
    contract::{Container, Context, PodSet, Port},
    paths::HOST_NAMES,
};

/// The port on which the first node listens.
pub const RENDEZVOUS_PORT: u16 = 29500;

/// The field of a pod that holds its index in its Job, for [`Container::put_env_field`].
pub const POD_INDEX: &str = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

impl Container {
    /// Adds [`RENDEZVOUS_PORT`] to the container, unless the container has it. The name and host port that the runtime sets are kept.
    pub fn open_rendezvous_port(&self) {
        if self.port(RENDEZVOUS_PORT, "TCP").is_none() {
            self.put_port(&Port::tcp(RENDEZVOUS_PORT));
        }
    }
}

impl Context {
    /// Warns if the nodes of a policy cannot connect to the first pod: it has no DNS name, or the pods have no index.
    pub fn warn_of_unreachable_nodes(&self, policy: &str, pod_set: &PodSet) {
        if !self.info().has_host_names() {
            let message = format!(
                "is false, so {policy} cannot find the first node by its DNS name; remove it, or set it to true"
            );
            self.warn(&message, Some(HOST_NAMES));
        }
        if !pod_set.is_indexed() {
            let message = format!(
                "is `NonIndexed`, so {policy} cannot tell the nodes apart by their index; remove it, or set it to `Indexed`"
            );
            self.warn(&message, Some(&pod_set.job_path("completionMode")));
        }
    }
}

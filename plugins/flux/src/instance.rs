//! The Flux instance of a TrainJob: its hosts, their resources, and the tasks.

use trainyard_sdk::{Container, Context, Failure, PodSet};

use crate::settings::Settings;

/// The Flux instance of a TrainJob.
pub(crate) struct Instance {
    /// The hosts in Flux's hostlist format, and the host of the lead broker.
    pub(crate) hosts: String,
    pub(crate) lead: String,
    /// The domain of the hosts' DNS names.
    pub(crate) domain: String,
    pub(crate) nodes: u32,
    pub(crate) tasks: u32,
    pub(crate) tasks_because: &'static str,
    /// The number of cores per node.
    pub(crate) cores: u32,
    /// The number of GPUs per node. `None` if Flux assigns none.
    pub(crate) gpus: Option<u32>,
    pub(crate) settings: Settings,
}

impl Instance {
    /// Reads the instance, with all errors.
    pub(crate) fn read(ctx: &Context, pod_set: &PodSet, node: &Container) -> (Self, Vec<Failure>) {
        let mut problems = Vec::new();
        let settings = Settings::read(node, pod_set, &mut problems);
        let accelerators = pod_set.accelerators();
        let (tasks, tasks_because) = match ctx.job().processes_per_node() {
            Some(explicit) => (explicit, "the number in the TrainJob or the runtime"),
            None => pod_set.default_processes(),
        };
        let cpus = node
            .request("cpu")
            .and_then(|amount| ctx.quantity_ceil(&amount));
        let cpus = cpus.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(0);
        let (job, info) = (ctx.job(), ctx.info());
        let (subdomain, cluster) = (info.subdomain(), info.cluster_domain());
        let lead = pod_set.address(0, 0);
        let instance = Self {
            hosts: pod_set.hostlist(),
            lead: lead.split('.').next().unwrap_or_default().to_owned(),
            domain: format!("{subdomain}.{}.svc.{cluster}", job.namespace()),
            nodes: pod_set.address_count(),
            tasks,
            tasks_because,
            cores: cpus.max(tasks),
            gpus: accelerators.filter(|gpus| *gpus > 0),
            settings,
        };
        (instance, problems)
    }
    /// Warns if tasks share accelerators. Flux allows it, because it assigns the accelerators to the node and not to the tasks.
    pub(crate) fn warn_of_shared_accelerators(&self, ctx: &Context) {
        let Some(gpus) = self.gpus.filter(|gpus| *gpus < self.tasks) else {
            return;
        };
        let (tasks, s) = (self.tasks, if gpus == 1 { "" } else { "s" });
        let message = format!(
            "is {tasks}, but a node has {gpus} accelerator{s}, so tasks share them; lower it if each task needs one of its own"
        );
        ctx.warn(&message, Some(&ctx.job().processes_path("flux")));
    }
}

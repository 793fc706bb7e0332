//! What the Flux instance of a TrainJob is: which hosts it has, what each of them has, and what the command runs on.

use trainyard_sdk::{Container, Context, Failure, PROCESSES, PodSet};

use crate::settings::Settings;

/// The Flux instance of a TrainJob.
pub(crate) struct Instance {
    /// The hosts as Flux writes them, and the one whose broker leads.
    pub(crate) hosts: String,
    pub(crate) lead: String,
    /// What stands behind a host's name in its DNS name.
    pub(crate) domain: String,
    pub(crate) nodes: u32,
    pub(crate) tasks: u32,
    pub(crate) tasks_because: &'static str,
    /// Cores of each node.
    pub(crate) cores: u32,
    /// GPUs of each node; none where Flux hands out none.
    pub(crate) gpus: Option<u32>,
    pub(crate) settings: Settings,
}

impl Instance {
    /// Reads what the instance is, with all that is wrong with it.
    pub(crate) fn read(ctx: &Context, pod_set: &PodSet, node: &Container) -> (Self, Vec<Failure>) {
        let mut problems = Vec::new();
        let settings = Settings::read(node, pod_set, &mut problems);
        let accelerators = pod_set.accelerators();
        let (tasks, tasks_because) = match tasks(ctx, pod_set, accelerators) {
            Ok(tasks) => tasks,
            Err(problem) => {
                problems.push(problem);
                (1, "")
            }
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
}

/// Tasks on each node, and why.
fn tasks(
    ctx: &Context,
    pod_set: &PodSet,
    accelerators: Option<u32>,
) -> Result<(u32, &'static str), Failure> {
    let Some(explicit) = ctx.job().processes_per_node() else {
        return pod_set.processes_by_accelerators().ok_or_else(|| {
            Failure::from(
                "is required: the number of devices in a node's resource claims is not known",
            )
            .at(PROCESSES)
        });
    };
    if let Some(accelerators) = accelerators.filter(|count| (1..explicit).contains(count)) {
        let message = format!(
            "is {explicit}, and a node has {accelerators} accelerators; give at most {accelerators}, or give each node more of them"
        );
        return Err(Failure::from(message).at(ctx.job().processes_path("flux")));
    }
    Ok((explicit, "the number in the TrainJob or the runtime"))
}

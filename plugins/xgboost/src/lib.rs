//! The XGBoost policy: programs pass `DMLC_*` env vars to XGBoost's tracker and its collective; this plugin sets them, and opens the port
//! of the tracker.

use trainyard_sdk::{
    Context, Devices, Failure, POD_INDEX, PROCESSES, PodSet, RendezvousConfig, RendezvousPort,
    Transform,
};

/// The XGBoost policy.
pub struct XgBoost;

trainyard_sdk::plugin!(XgBoost: transform; operator_config = RendezvousConfig);

impl Transform for XgBoost {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let operator = ctx.job().operator_config_as::<RendezvousConfig>()?;
        let (pod_set, node) = ctx.trainer("xgboost")?;
        let port = RendezvousPort::of(ctx, &pod_set, &node, &operator);
        ctx.warn_of_unreachable_nodes("XGBoost", &pod_set);
        port.warn_of_host_network(ctx, &pod_set, "xgboost");
        ctx.warn_of_lone_restarts(&pod_set);
        let workers = Workers::of(ctx, &pod_set);
        workers.warn_of_uncounted_processes(ctx);
        ctx.warn_of_little_shared_memory(&pod_set, &node, workers.per_node);
        ctx.because("the tracker runs in the first pod of the trainer's replicated job");
        node.put_env("DMLC_TRACKER_URI", &pod_set.address(0, 0));
        ctx.because(port.because);
        node.put_env("DMLC_TRACKER_PORT", &port.number.to_string());
        ctx.because(&workers.task_id());
        node.put_env_field("DMLC_TASK_ID", POD_INDEX);
        ctx.because(&workers.summary());
        node.put_env("DMLC_NUM_WORKER", &workers.total().to_string());
        ctx.because("the tracker listens on this port");
        port.open(&node);
        Ok(())
    }
}

/// The workers of a TrainJob.
struct Workers {
    nodes: u32,
    per_node: u32,
    /// Where the number on each node is from.
    because: &'static str,
    is_explicit: bool,
    /// The MIG slices of a node.
    slices: u32,
}

/// Returns the workers of a node if the TrainJob sets no number, and why.
fn default_workers(pod_set: &PodSet, devices: &[Devices]) -> (u32, &'static str) {
    if Devices::are_shares_alone(devices) || !devices.iter().any(Devices::is_resource) {
        return pod_set.default_processes();
    }
    let gpus = devices.iter().filter(|one| one.is_gpu());
    match gpus
        .filter_map(|one| one.count)
        .fold(0, u32::saturating_add)
    {
        0 => (
            1,
            "none of a node's accelerators is a GPU, the only ones that XGBoost uses",
        ),
        gpus => (gpus, "the GPUs of a node"),
    }
}

impl Workers {
    fn of(ctx: &Context, pod_set: &PodSet) -> Self {
        let explicit = ctx.job().processes_per_node();
        let devices = pod_set.devices();
        let (per_node, because) = explicit
            .map(|processes| (processes, "the number in the TrainJob"))
            .unwrap_or_else(|| default_workers(pod_set, &devices));
        Self {
            nodes: pod_set.address_count(),
            per_node,
            because,
            is_explicit: explicit.is_some(),
            slices: Devices::mig_slices(&devices),
        }
    }

    /// Warns of several workers that only the accelerators of a node request: a program that starts one process waits for the others
    /// forever.
    fn warn_of_uncounted_processes(&self, ctx: &Context) {
        if self.is_explicit {
            return;
        }
        if self.per_node < 2 {
            self.warn_of_several_slices(ctx);
            return;
        }
        let message = format!(
            "is not set, so the tracker waits for {0} workers on each node, one for each of its accelerators; set it to {0} if the command starts {0} processes with a task ID each, or to 1 if it starts one",
            self.per_node
        );
        ctx.warn(&message, Some(PROCESSES));
    }

    /// Warns of MIG slices that no worker uses.
    fn warn_of_several_slices(&self, ctx: &Context) {
        let slices = self.slices;
        if slices < 2 {
            return;
        }
        let message = format!(
            "is not set, so each node has one worker, which uses one of its {slices} MIG slices; request one slice for each node and raise `numNodes`, or set it to {slices} if the command starts {slices} processes that select their slices with CUDA_VISIBLE_DEVICES"
        );
        ctx.warn(&message, Some(PROCESSES));
    }

    /// Returns the number of all workers. The tracker waits for as many before training starts.
    fn total(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.per_node)
    }

    /// Returns how many there are, and why.
    fn summary(&self) -> String {
        let count = |number: u32, noun: &str| {
            let plural = if number == 1 { "" } else { "s" };
            format!("{number} {noun}{plural}")
        };
        let (nodes, workers) = (count(self.nodes, "node"), count(self.per_node, "worker"));
        format!("{nodes} with {workers} each: {}", self.because)
    }

    /// Returns what a pod's task ID is, and that it is not enough if the pod has several workers.
    fn task_id(&self) -> String {
        let index = "the pod's index in its Job";
        match self.per_node {
            1 => index.to_owned(),
            several => {
                format!("{index}; each of the pod's {several} workers needs an ID of its own")
            }
        }
    }
}

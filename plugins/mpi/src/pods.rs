//! The launcher and the nodes, and the number of processes of each pod.

use trainyard_sdk::{
    Container, Context, Devices, NODE, PROCESSES, PodSet, TRAINER, paths::REPLICATED_JOBS,
};

use crate::config::{Implementation, MpiConfig};

/// The replicated job whose container `node` runs mpirun.
pub(crate) const LAUNCHER: &str = "launcher";

/// One of the two pod sets.
pub(crate) struct Pods {
    pub(crate) set: PodSet,
    pub(crate) container: Container,
}

/// The pods of a TrainJob.
pub(crate) struct Members {
    pub(crate) launcher: Pods,
    /// `None` if the launcher is the only node.
    pub(crate) nodes: Option<Pods>,
}

impl Members {
    /// Finds the pods, and reports what the runtime lacks.
    pub(crate) fn find(ctx: &Context, config: &MpiConfig) -> Option<Self> {
        let launcher = pods(ctx, LAUNCHER, "runs mpirun");
        let is_alone = config.run_launcher_as_node
            && ctx.job().nodes() == 1
            && ctx.info().pod_set(NODE).is_none();
        if is_alone {
            return launcher.map(|launcher| Self {
                launcher,
                nodes: None,
            });
        }
        let nodes = pods(ctx, NODE, "runs the processes that mpirun starts");
        let (launcher, nodes) = (launcher?, nodes?);
        Some(Self {
            launcher,
            nodes: Some(nodes),
        })
    }

    /// Both pod sets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pods> {
        self.nodes.iter().chain([&self.launcher])
    }

    /// Reports counts with which mpirun would run more than once, or nodes would not be counted.
    pub(crate) fn check_counts(&self, ctx: &Context, config: &MpiConfig) {
        // With an ancestor label, the host requires one replica.
        let unlabelled = self.all().filter(|pods| pods.set.ancestor().is_none());
        for Pods { set, .. } in unlabelled {
            let (name, replicas) = (set.name(), set.replicas());
            // If the launcher is the only node, the host sets the replicas of the nodes to 0.
            let is_left_out = name == NODE && config.run_launcher_as_node && ctx.job().nodes() == 1;
            if replicas != 1 && !(is_left_out && replicas == 0) {
                let message =
                    format!("must be 1; found {replicas}; set the number of pods with `numNodes`");
                ctx.error(
                    &message,
                    Some(&format!("{REPLICATED_JOBS}[{name}].replicas")),
                );
            }
        }
        let pods = self.launcher.set.count();
        if pods != 1 {
            let message =
                format!("must be 1, because mpirun runs in one pod; found {pods}; remove it");
            let path = format!("{REPLICATED_JOBS}[{LAUNCHER}].template.spec.parallelism");
            ctx.error(&message, Some(&path));
        }
    }
}

/// The pod set of that name and its container. Reports an error if the runtime lacks one of them.
fn pods(ctx: &Context, name: &str, what: &str) -> Option<Pods> {
    let Some(set) = ctx.info().pod_set(name) else {
        let message = format!(
            "mpi needs a replicated job `{name}`, whose container `{NODE}` {what}; add it to the runtime"
        );
        ctx.error(&message, Some(REPLICATED_JOBS));
        return None;
    };
    match set.container(NODE).filter(|container| !container.is_init()) {
        Some(container) => Some(Pods { set, container }),
        // For the trainer, the host reports it.
        None if set.ancestor().as_deref() == Some(TRAINER) => None,
        None => {
            let message = format!("must have a container `{NODE}`, which {what}");
            ctx.error(&message, Some(&set.path("containers")));
            None
        }
    }
}

/// Pods that run processes, each the same number.
pub(crate) struct Hosts {
    pub(crate) set: PodSet,
    pub(crate) slots: u32,
    accelerators: Option<u32>,
}

impl Hosts {
    /// The hosts in the order of the runtime's replicated jobs, as in the hostfile. `None` if the implementation does not support their
    /// numbers of processes, which is reported.
    pub(crate) fn of(ctx: &Context, config: &MpiConfig) -> Option<Vec<Self>> {
        let is_host = |set: &PodSet| {
            let name = set.name();
            let runs = name == NODE || config.run_launcher_as_node && name == LAUNCHER;
            runs && set.address_count() > 0
        };
        let sets = ctx.info().pod_sets().into_iter().filter(is_host);
        let hosts: Vec<_> = sets.map(|set| Self::counted(ctx, set)).collect();
        one_number(ctx, config.mpi_implementation, &hosts).then_some(hosts)
    }

    fn counted(ctx: &Context, set: PodSet) -> Self {
        let accelerators = set.accelerators();
        let explicit = ctx.job().processes_per_node();
        Self {
            slots: explicit.unwrap_or_else(|| accelerators.unwrap_or(1).max(1)),
            set,
            accelerators,
        }
    }

    /// The reason for the number of processes.
    fn because(&self, ctx: &Context) -> String {
        if ctx.job().processes_per_node().is_some() {
            return format!("by {}", ctx.job().processes_path("mpi"));
        }
        let devices = self.set.devices();
        match self.accelerators {
            Some(accelerators) => because_of(&devices, accelerators),
            None if Devices::are_shares_alone(&devices) => {
                "since no number is given and it has a share of an accelerator".to_owned()
            }
            // DRA warns of it.
            None => "since no number is given and the number of devices in its resource claims is not known".to_owned(),
        }
    }

    /// Warns if processes share accelerators, which is a mistake unless the program is written for it.
    pub(crate) fn warn_of_shared_accelerators(&self, ctx: &Context) {
        let (name, slots) = (self.set.name(), self.slots);
        let accelerators = self.accelerators.unwrap_or_default();
        if accelerators > 0 && slots > accelerators {
            let s = if accelerators == 1 { "" } else { "s" };
            let message = format!(
                "is {slots}, but a pod of replicated job `{name}` has {accelerators} accelerator{s}, so processes share them; lower it if each process needs one of its own"
            );
            ctx.warn(&message, Some(&ctx.job().processes_path("mpi")));
        }
    }

    /// Warns if the processes of a pod have too little shared memory.
    pub(crate) fn warn_of_little_shared_memory(&self, ctx: &Context) {
        if let Some(node) = self.set.container(NODE) {
            ctx.warn_of_little_shared_memory(&self.set, &node, self.slots);
        }
    }

    /// The number of processes per pod, with the reason.
    pub(crate) fn summary(&self, ctx: &Context) -> String {
        let (name, slots, because) = (self.set.name(), self.slots, self.because(ctx));
        let processes = if slots == 1 { "process" } else { "processes" };
        format!("{slots} {processes} in each pod of `{name}`, {because}")
    }
}

/// The reason for a number of processes that is derived from devices.
fn because_of(devices: &[Devices], accelerators: u32) -> String {
    if accelerators > 0 {
        let is_resource = |device: &Devices| device.source.starts_with("resource/");
        let known = || devices.iter().filter(|device| device.accelerator);
        // If there are resources, claims do not count.
        let by_resource = known().any(is_resource);
        let counted = known().filter(|device| is_resource(device) == by_resource);
        let sources: Vec<_> = counted.map(|device| &*device.source).collect();
        return format!(
            "one for each accelerator, counted from {}",
            sources.join(", ")
        );
    }
    match devices.is_empty() {
        true => "since no number is given and it requests no known accelerator",
        false => "since no number is given and none of its devices counts as an accelerator",
    }
    .to_owned()
}

/// Whether the implementation supports the numbers of processes. Reports an error if not.
fn one_number(ctx: &Context, implementation: Implementation, hosts: &[Hosts]) -> bool {
    let [first, others @ ..] = hosts else {
        return true;
    };
    let other = others.iter().find(|other| other.slots != first.slots);
    let Some(other) = other.filter(|_| implementation.has_one_number_for_all_hosts()) else {
        return true;
    };
    let message = format!(
        "is required, because a pod of replicated job `{}` can run {} processes, but a pod of `{}` only {}, and {} starts the same number on each host; set a number that fits both",
        first.set.name(),
        first.slots,
        other.set.name(),
        other.slots,
        implementation.name()
    );
    ctx.error(&message, Some(PROCESSES));
    false
}

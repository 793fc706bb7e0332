//! The number of processes that torchrun starts on each node.

use trainyard_sdk::{Container, Context, Devices, PROCESSES, PodSet};

use crate::config::Processes;

/// The number of processes per node, and the reason.
pub(crate) fn processes(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    default: Option<Processes>,
) -> (String, &'static str) {
    let cpus = || cpus(ctx, node).to_string();
    match (ctx.job().processes_per_node(), default) {
        (Some(explicit), _) => (
            explicit.to_string(),
            "the number in the TrainJob or the runtime",
        ),
        (None, Some(Processes::Gpu)) => ("gpu".to_owned(), "the runtime sets `gpu`"),
        (None, Some(Processes::Cpu)) => (cpus(), "the runtime sets `cpu`: the CPUs of a node"),
        (None, None) => by_devices(pod_set).unwrap_or_else(|because| (cpus(), because)),
    }
}

/// The number of processes for the devices of a node, and the reason. It is `auto` if torchrun itself can count the accelerators: for
/// others, it would start a process for each CPU of the machine, or only one.
///
/// # Errors
/// If the node has no accelerators: the reason why its CPUs count.
fn by_devices(pod_set: &PodSet) -> Result<(String, &'static str), &'static str> {
    let devices = pod_set.devices();
    let auto = |because| Ok(("auto".to_owned(), because));
    if Devices::are_shares_alone(&devices) {
        return auto("a node has a share of a GPU; torchrun counts the GPUs that it sees");
    }
    if devices.iter().any(Devices::is_gpu) {
        return auto("a node has GPUs, which torchrun counts");
    }
    match pod_set.accelerators() {
        Some(0) if devices.is_empty() => Err("a node requests no known accelerator: its CPUs"),
        Some(0) => Err("none of a node's devices counts as an accelerator: its CPUs"),
        Some(accelerators) => Ok((
            accelerators.to_string(),
            match devices.iter().any(Devices::is_resource) {
                true => {
                    "the accelerators of a node, which torchrun does not count, because they are not GPUs"
                }
                false => "the accelerators of a node's resource claims",
            },
        )),
        None => auto(
            "the number of accelerators in a node's resource claims is not known; torchrun counts the GPUs that it sees, or else the CPUs",
        ),
    }
}

/// Returns how many processes torchrun starts for a value of `PET_NPROC_PER_NODE`. If it counts them itself, it counts only GPUs of a node
/// that also has other accelerators.
pub(crate) fn count(pod_set: &PodSet, processes: &str) -> u32 {
    let of_gpus = || {
        let devices = pod_set.devices().into_iter().filter(Devices::is_gpu);
        let gpus = devices
            .filter_map(|one| one.count)
            .fold(0, u32::saturating_add);
        (gpus > 0).then_some(gpus)
    };
    let written = processes.parse().ok();
    let counted = written.or_else(of_gpus);
    counted.or_else(|| pod_set.accelerators()).unwrap_or(1)
}

/// The number of whole CPUs of the node container, at least 1.
fn cpus(ctx: &Context, node: &Container) -> i64 {
    node.request("cpu")
        .and_then(|amount| ctx.quantity_ceil(&amount))
        .unwrap_or(1)
        .max(1)
}

/// Warns of several processes that only MIG slices request: CUDA shows each of them the same slice.
pub(crate) fn warn_of_several_slices(ctx: &Context, pod_set: &PodSet, processes: &str) {
    let Ok(slices @ 2..) = processes.parse::<u32>() else {
        return;
    };
    let is_explicit = ctx.job().processes_per_node().is_some();
    if is_explicit || Devices::mig_slices(&pod_set.devices()) != slices {
        return;
    }
    let message = format!(
        "is not set, so torchrun starts {slices} processes on each node, one for each MIG slice, but CUDA shows all of them the same slice; request one slice for each node and raise `numNodes`, or set it to {slices} if each process selects its slice with CUDA_VISIBLE_DEVICES"
    );
    ctx.warn(&message, Some(PROCESSES));
}

//! The shared memory of a node's processes.

use trainyard_sdk::{Container, Context, PodSet};

/// Where programs find shared memory.
const PATH: &str = "/dev/shm";
/// The member of the pod spec that shares the machine's.
const OF_THE_MACHINE: &str = "hostIPC";

/// Warns if several processes on a node have only the shared memory of the container runtime, which data loaders and NCCL exceed.
/// `processes` is the value of `PET_NPROC_PER_NODE`.
pub(crate) fn warn_if_missing(ctx: &Context, pod_set: &PodSet, node: &Container, processes: &str) {
    // If torchrun counts the processes, they are as many as the accelerators.
    let processes = processes.parse().ok().or_else(|| pod_set.accelerators());
    let Some(processes @ 2..) = processes else {
        return;
    };
    if has_volume(ctx, pod_set, node) {
        return;
    }
    let message = format!(
        "has no `{PATH}`, so the {processes} processes on a node share 64 MiB, which data loaders and NCCL exceed; mount an `emptyDir` with `medium: Memory` and a `sizeLimit` there"
    );
    ctx.warn(&message, Some(&pod_set.path_in(node, "volumeMounts")));
}

/// Whether the runtime or a patch mounts a volume, or shares the machine's memory. Reads of the base record do not affect the order of
/// plugins.
fn has_volume(ctx: &Context, pod_set: &PodSet, node: &Container) -> bool {
    let Some(pods) = ctx.base().pod_set(&pod_set.name()) else {
        return false;
    };
    let of_the_machine = pods.raw(OF_THE_MACHINE).and_then(|value| value.boolean(""));
    let node = pods.container(&node.name());
    let mounts = node.map(|node| node.mounts()).unwrap_or_default();
    let mut paths = mounts.iter().map(|mount| mount.path.trim_end_matches('/'));
    of_the_machine == Some(true) || paths.any(|path| path == PATH)
}

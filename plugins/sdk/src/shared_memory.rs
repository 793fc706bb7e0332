//! The shared memory of a pod's processes.

use crate::contract::{Container, Context, PodSet};

/// Where programs find shared memory.
const PATH: &str = "/dev/shm";
/// The member of the pod spec that shares the machine's.
const OF_THE_MACHINE: &str = "hostIPC";

impl Context {
    /// Warns if several processes of a container have only the shared memory of the container runtime, which data loaders, NCCL and MPI
    /// exceed. A volume of the runtime or of a patch counts. Only the base record is read, which needs no claim.
    pub fn warn_of_little_shared_memory(
        &self,
        pod_set: &PodSet,
        container: &Container,
        processes: u32,
    ) {
        if processes < 2 || self.has_shared_memory(pod_set, container) {
            return;
        }
        let message = format!(
            "has no `{PATH}`, so the {processes} processes of a pod share 64 MiB, which data loaders, NCCL and MPI exceed; mount an `emptyDir` with `medium: Memory` and a `sizeLimit` there"
        );
        self.warn(&message, Some(&pod_set.path_in(container, "volumeMounts")));
    }

    /// Returns whether the runtime or a patch mounts a volume there, or shares the machine's memory.
    fn has_shared_memory(&self, pod_set: &PodSet, container: &Container) -> bool {
        let Some(base) = self.base_of(pod_set) else {
            return false;
        };
        let of_the_machine = base.raw(OF_THE_MACHINE).and_then(|value| value.boolean(""));
        let container = base.container(&container.name());
        let mounts = container.map(|one| one.mounts()).unwrap_or_default();
        let mut paths = mounts.iter().map(|mount| mount.path.trim_end_matches('/'));
        of_the_machine == Some(true) || paths.any(|path| path == PATH)
    }
}

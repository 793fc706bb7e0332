//! The accelerators of a node, and the number of processes that follows from them.

use crate::contract::{Devices, PodSet};

/// The processes of a node with an unknown number of devices, of which DRA warns, and why. A program that waits for more processes than
/// start never runs.
const UNCOUNTED: (u32, &str) = (
    1,
    "the number of devices in a node's resource claims is not known",
);

impl Devices {
    /// Returns whether these are accelerators that the node container requests as an extended resource, or shares of one.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        self.accelerator && self.source.starts_with("resource/")
    }

    /// Returns whether these are GPUs that the node container requests as an extended resource: its name contains `gpu`, such as
    /// `nvidia.com/gpu` or `gpu.intel.com/xe`. MIG slices are not GPUs: a process sees one of them.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.is_resource() && self.source.contains("gpu")
    }
}

impl Devices {
    /// Returns how many MIG slices the node container requests as extended resources. `all` is [`PodSet::devices`].
    #[must_use]
    pub fn mig_slices(all: &[Self]) -> u32 {
        let slices = all
            .iter()
            .filter(|one| one.source.starts_with("resource/nvidia.com/mig-"));
        slices
            .filter_map(|one| one.count)
            .fold(0, u32::saturating_add)
    }

    /// Returns whether all accelerators of the node container are shares of one, such as `nvidia.com/gpumem`. Their amounts
    /// are memory or cores, so [`PodSet::accelerators`] is not known. One process can use them. `all` is [`PodSet::devices`].
    #[must_use]
    pub fn are_shares_alone(all: &[Self]) -> bool {
        let mut unknown = all
            .iter()
            .filter(|one| one.accelerator && one.count.is_none())
            .peekable();
        unknown.peek().is_some() && unknown.all(Devices::is_resource)
    }
}

impl PodSet {
    /// Returns [`PodSet::processes_by_accelerators`], or else one process.
    ///
    /// Needs the same claims as [`PodSet::devices`].
    #[must_use]
    pub fn default_processes(&self) -> (u32, &'static str) {
        self.processes_by_accelerators().unwrap_or(UNCOUNTED)
    }

    /// Returns how many processes a node runs if neither the TrainJob nor the runtime sets a number, and why: one for each accelerator of
    /// the node container, and at least one. None if the number of devices in its resource claims is not known.
    ///
    /// Needs the same claims as [`PodSet::devices`].
    #[must_use]
    pub fn processes_by_accelerators(&self) -> Option<(u32, &'static str)> {
        match self.accelerators() {
            Some(0) if self.devices().is_empty() => Some((
                1,
                "neither the TrainJob nor the runtime gives a number, and a node requests no known accelerator",
            )),
            Some(0) => Some((
                1,
                "neither the TrainJob nor the runtime gives a number, and none of a node's devices counts as an accelerator",
            )),
            Some(accelerators) => Some((accelerators, "the accelerators of a node")),
            None if Devices::are_shares_alone(&self.devices()) => {
                Some((1, "a node has a share of an accelerator"))
            }
            None => None,
        }
    }
}

//! Devices of a pod set's node container, and the number of processes.

use super::*;
use crate::value::Devices;

/// A pod set whose devices the plugin may count.
struct CountedPodSet {
    base: bool,
    pod_set: u32,
    node: Option<ContainerId>,
}

impl Call {
    /// `pod-set.devices`
    pub fn pod_set_devices(&mut self, handle: handle::PodSet) -> Result<Vec<Devices>, Fault> {
        let counted = self.may_count_devices(handle)?;
        let devices = self.record_of(counted.base).devices(
            counted.pod_set,
            counted.node,
            &self.inputs.job.accelerators,
        );
        self.meter
            .add_bytes(devices.iter().map(|d| d.source.len() + 16).sum())?;
        Ok(devices)
    }

    /// `pod-set.accelerators`
    pub fn pod_set_accelerators(&mut self, handle: handle::PodSet) -> Result<Option<u32>, Fault> {
        let counted = self.may_count_devices(handle)?;
        Ok(self.record_of(counted.base).accelerators(
            counted.pod_set,
            counted.node,
            &self.inputs.job.accelerators,
        ))
    }

    /// `pod-set.processes`
    pub fn pod_set_processes(&mut self, handle: handle::PodSet) -> Result<Option<u32>, Fault> {
        let counted = self.may_count_devices(handle)?;
        let job = &self.inputs.job;
        Ok(self.record_of(counted.base).processes(
            counted.pod_set,
            counted.node,
            job.processes_per_node,
            &job.accelerators,
        ))
    }

    /// Checks the reads that counting devices depends on. A node container of another plugin that this one cannot see is ignored;
    /// otherwise the count would depend on the order of the two plugins.
    fn may_count_devices(&mut self, handle: handle::PodSet) -> Result<CountedPodSet, Fault> {
        let (target, pod_set) = self.pod_set_target(handle)?;
        self.may_read_all(target, Field::Devices)?;
        let base = target.base;
        let node = self
            .record_of(base)
            .node_container(pod_set)
            .filter(|id| base || self.is_in_sight(*id));
        if let Some(id) = node {
            let scope = EntryScope::Container(id);
            self.may_read_all(Target { scope, base }, Field::Requests)?;
            self.may_read_all(Target { scope, base }, Field::Limits)?;
        }
        Ok(CountedPodSet {
            base,
            pod_set,
            node,
        })
    }
}

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
        if let Some(id) = counted.node {
            let target = Target {
                scope: EntryScope::Container(id),
                base: counted.base,
            };
            self.may_read(target, Field::Requests, Some("cpu"))?;
            self.may_read(target, Field::Limits, Some("cpu"))?;
        }
        let job = &self.inputs.job;
        Ok(self.record_of(counted.base).processes(
            counted.pod_set,
            counted.node,
            job.processes_per_node,
            &job.accelerators,
        ))
    }

    /// Checks the read of all devices. Its claim also orders this plugin after those that add the node container, or change its requests
    /// and limits of accelerators (`ClaimPath::counts`), so it needs no claims on them.
    fn may_count_devices(&mut self, handle: handle::PodSet) -> Result<CountedPodSet, Fault> {
        let (target, pod_set) = self.pod_set_target(handle)?;
        self.may_read_all(target, Field::Devices)?;
        let base = target.base;
        Ok(CountedPodSet {
            base,
            pod_set,
            node: self.record_of(base).node_container(pod_set),
        })
    }
}

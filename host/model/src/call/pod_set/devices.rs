//! Devices of a pod set's node container, and the processes that they make.

use super::*;
use crate::{record::NODE_CONTAINER, value::Devices};

impl Call {
    /// `pod-set.devices`
    pub fn pod_set_devices(&mut self, handle: u32) -> Result<Vec<Devices>, Fault> {
        let (target, at) = self.may_count_devices(handle)?;
        let devices = self
            .record_of(target.base)
            .devices(at, &self.inputs.job.accelerators);
        self.meter
            .add_bytes(devices.iter().map(|d| d.source.len() + 16).sum())?;
        Ok(devices)
    }

    /// `pod-set.accelerators`
    pub fn pod_set_accelerators(&mut self, handle: u32) -> Result<Option<u32>, Fault> {
        let (target, at) = self.may_count_devices(handle)?;
        Ok(self
            .record_of(target.base)
            .accelerators(at, &self.inputs.job.accelerators))
    }

    /// `pod-set.processes`
    pub fn pod_set_processes(&mut self, handle: u32) -> Result<Option<u32>, Fault> {
        let (target, at) = self.may_count_devices(handle)?;
        let job = &self.inputs.job;
        Ok(self
            .record_of(target.base)
            .processes(at, job.processes_per_node, &job.accelerators))
    }

    /// Checks the reads that counting devices stands on.
    fn may_count_devices(&mut self, handle: u32) -> Result<(Target, u32), Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        self.may_read_all(target, Field::Devices)?;
        if let Some(id) = self
            .record_of(target.base)
            .container_named(at, NODE_CONTAINER)
        {
            let node = Target {
                scope: PlaceScope::Container(id),
                base: target.base,
            };
            self.may_read_all(node, Field::Requests)?;
            self.may_read_all(node, Field::Limits)?;
        }
        Ok((target, at))
    }
}

//! `pod-set-info.pod-set`.

mod pods;
mod volumes;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Call, Fault, Target, handle, wrong};
use crate::{
    claims::{Grant, Touch},
    policy::Phase,
    record::{Container, ContainerId, Datum, Field, Fields, NODE_CONTAINER, Owner, PlaceScope},
    text::is_dns_label,
    value::{Dependency, Devices, KeyFile},
};

/// What is wrong with the name of a container or volume.
const NO_LABEL: &str = "the name is no DNS label: at most 63 of a-z, 0-9 and `-`";

impl Call {
    /// `pod-set.name`
    pub fn pod_set_name(&mut self, rep: u32) -> Result<String, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        let name = self
            .record_of(target.base)
            .pod_set(at)
            .map(|set| set.name.clone())
            .unwrap_or_default();
        self.give(&name)
    }

    /// `pod-set.ancestor`
    pub fn pod_set_ancestor(&mut self, rep: u32) -> Result<Option<String>, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        let ancestor = self
            .record_of(target.base)
            .pod_set(at)
            .and_then(|set| set.ancestor.clone());
        self.give_some(ancestor.as_deref())
    }

    /// `pod-set.depends-on`
    pub fn pod_set_depends_on(&mut self, rep: u32) -> Result<Vec<Dependency>, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        let list = self
            .record_of(target.base)
            .pod_set(at)
            .map(|set| set.depends_on.clone())
            .unwrap_or_default();
        self.meter.add_bytes(
            list.iter()
                .map(|d| d.pod_set.len() + d.status.len() + 16)
                .sum(),
        )?;
        Ok(list)
    }

    /// `pod-set.count`
    pub fn pod_set_count(&mut self, rep: u32) -> Result<u32, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        Ok(self
            .record_of(target.base)
            .pod_set(at)
            .map_or(0, |set| set.count))
    }

    /// `pod-set.replicas`
    pub fn pod_set_replicas(&mut self, rep: u32) -> Result<u32, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        Ok(self
            .record_of(target.base)
            .pod_set(at)
            .map_or(0, |set| set.replicas))
    }

    /// `pod-set.address`
    pub fn pod_set_address(
        &mut self,
        rep: u32,
        job_index: u32,
        pod_index: u32,
    ) -> Result<String, Fault> {
        let (_, at) = self.pod_set_target(rep)?;
        match self.record.address(at, job_index, pod_index) {
            Some(address) => self.give(&address),
            None => wrong(format!("there is no pod {pod_index} of job {job_index}")),
        }
    }

    /// `pod-set.address-count`
    pub fn pod_set_address_count(&mut self, rep: u32) -> Result<u32, Fault> {
        let (_, at) = self.pod_set_target(rep)?;
        Ok(self
            .record
            .pod_set(at)
            .map_or(0, crate::record::PodSet::pods))
    }

    /// `pod-set.addresses`
    pub fn pod_set_addresses(
        &mut self,
        rep: u32,
        start: u32,
        max: u32,
    ) -> Result<Vec<String>, Fault> {
        let mut out = Vec::new();
        self.each_address(rep, start, max, 8, |address| out.push(address))?;
        self.give_all(out)
    }

    /// `pod-set.joined-addresses`
    pub fn pod_set_joined_addresses(
        &mut self,
        rep: u32,
        start: u32,
        max: u32,
        separator: &str,
    ) -> Result<String, Fault> {
        self.meter.text(separator)?;
        let mut out = String::new();
        self.each_address(rep, start, max, separator.len(), |address| {
            if !out.is_empty() {
                out.push_str(separator);
            }
            out.push_str(&address);
        })?;
        self.meter.text(&out)?;
        Ok(out)
    }

    /// Gives up to `max` addresses from the one numbered `start`, each with `more` bytes beside it; refuses before it
    /// builds what the meter can't pay.
    fn each_address(
        &mut self,
        rep: u32,
        start: u32,
        max: u32,
        more: usize,
        mut give: impl FnMut(String),
    ) -> Result<(), Fault> {
        let (_, at) = self.pod_set_target(rep)?;
        let Some(set) = self.record.pod_set(at) else {
            return Ok(());
        };
        let (count, end) = (set.count.max(1), start.saturating_add(max).min(set.pods()));
        let prefix = format!("{}-{}-", self.record.job_name, set.name);
        let each = prefix.len() + self.record.subdomain.len() + 4;
        let whole = each.saturating_add(more);
        self.meter
            .clone()
            .add_bytes(whole.saturating_mul(end.saturating_sub(start) as usize))?;
        for pod in start..end {
            let mut address = String::with_capacity(each + 8);
            let _ = write!(
                address,
                "{prefix}{}-{}.{}",
                pod / count,
                pod % count,
                self.record.subdomain
            );
            give(address);
        }
        Ok(())
    }

    /// `pod-set.containers`
    pub fn pod_set_containers(&mut self, rep: u32) -> Result<Vec<u32>, Fault> {
        self.container_handles(rep, Field::Containers)
    }

    /// `pod-set.init-containers`
    pub fn pod_set_init_containers(&mut self, rep: u32) -> Result<Vec<u32>, Fault> {
        self.container_handles(rep, Field::InitContainers)
    }

    fn container_handles(&mut self, rep: u32, list: Field) -> Result<Vec<u32>, Fault> {
        let (target, at) = self.pod_set_target(rep)?;
        self.may_read(target, list, None)?;
        let record = self.record_of(target.base);
        let handles = record
            .containers(at, list)
            .map(|id| handle(id.0, target.base))
            .collect();
        self.give_handles(handles)
    }

    /// `pod-set.container`
    pub fn pod_set_container(&mut self, rep: u32, name: &str) -> Result<Option<u32>, Fault> {
        self.meter.text(name)?;
        let (target, at) = self.pod_set_target(rep)?;
        let record = self.record_of(target.base);
        let named: Vec<ContainerId> = [Field::Containers, Field::InitContainers]
            .into_iter()
            .flat_map(|list| record.containers(at, list))
            .filter(|id| record.container(*id).is_some_and(|c| *c.name == *name))
            .collect();
        let found = named
            .into_iter()
            .find(|id| target.base || self.is_in_sight(*id))
            .map(|id| handle(id.0, target.base));
        self.give_handle(found)
    }

    /// Whether this plugin may know that the container is there. One that another plugin added is out of sight where no
    /// claim makes this plugin run after it: the answer would depend on the order.
    fn is_in_sight(&mut self, id: ContainerId) -> bool {
        let of_another = self
            .record
            .container(id)
            .is_some_and(|c| matches!(c.home, Owner::Plugin(_)) && c.home != self.owner());
        self.phase != Phase::Transform || !of_another || self.access.knows(&self.record, id)
    }

    /// `pod-set.add-container`
    pub fn pod_set_add_container(
        &mut self,
        rep: u32,
        name: &str,
        image: &str,
    ) -> Result<u32, Fault> {
        self.add_container(rep, Field::Containers, name, image)
    }

    /// `pod-set.add-init-container`
    pub fn pod_set_add_init_container(
        &mut self,
        rep: u32,
        name: &str,
        image: &str,
    ) -> Result<u32, Fault> {
        self.add_container(rep, Field::InitContainers, name, image)
    }

    fn add_container(
        &mut self,
        rep: u32,
        list: Field,
        name: &str,
        image: &str,
    ) -> Result<u32, Fault> {
        self.meter.text(name)?;
        self.meter.text(image)?;
        let (target, at) = self.pod_set_target(rep)?;
        if !is_dns_label(name) {
            return wrong(NO_LABEL);
        }
        self.may_write(target, Touch::Create, list, name)?;
        if self.is_taken(target, list, name) {
            return wrong(format!("there is a container `{name}` already"));
        }
        self.meter.add_handles(1)?;
        let id = self.record.new_container(Container {
            name: name.into(),
            pod_set: at,
            list,
            home: self.owner(),
            runtime_command: None,
            runtime_args: None,
            fields: Fields::default(),
        });
        self.put(target.scope, list, name, Some(Datum::Container(id)));
        self.put(
            PlaceScope::Container(id),
            Field::Image,
            "",
            Some(image.into()),
        );
        Ok(id.0)
    }

    /// Whether a new container of that name is this plugin's own mistake. Two plugins that add one to each list under one
    /// name do not know of each other; both are named once the record is frozen.
    fn is_taken(&self, target: Target, list: Field, name: &str) -> bool {
        [Field::Containers, Field::InitContainers]
            .into_iter()
            .any(|other| {
                let entry = self.record.entry(target.scope, other, name);
                let of_another = |owner| matches!(owner, Owner::Plugin(_)) && owner != self.owner();
                entry.is_some_and(|entry| other == list || !of_another(entry.owner))
            })
    }

    /// `pod-set.devices`
    pub fn pod_set_devices(&mut self, rep: u32) -> Result<Vec<Devices>, Fault> {
        let (target, at) = self.may_count_devices(rep)?;
        let devices = self
            .record_of(target.base)
            .devices(at, &self.inputs.job.accelerators);
        self.meter
            .add_bytes(devices.iter().map(|d| d.source.len() + 16).sum())?;
        Ok(devices)
    }

    /// `pod-set.accelerators`
    pub fn pod_set_accelerators(&mut self, rep: u32) -> Result<Option<u32>, Fault> {
        let (target, at) = self.may_count_devices(rep)?;
        Ok(self
            .record_of(target.base)
            .accelerators(at, &self.inputs.job.accelerators))
    }

    /// `pod-set.processes`
    pub fn pod_set_processes(&mut self, rep: u32) -> Result<Option<u32>, Fault> {
        let (target, at) = self.may_count_devices(rep)?;
        let job = &self.inputs.job;
        Ok(self
            .record_of(target.base)
            .processes(at, job.processes_per_node, &job.accelerators))
    }

    /// Checks the reads that counting devices stands on.
    fn may_count_devices(&mut self, rep: u32) -> Result<(Target, u32), Fault> {
        let (target, at) = self.pod_set_target(rep)?;
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

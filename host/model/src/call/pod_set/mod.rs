//! `pod-set-info.pod-set`.

mod addresses;
mod devices;
mod pods;
mod resource_claims;
mod spec;
mod terms;
mod volumes;

use serde_json::{Map, Value, json};

use super::{Call, Fault, Numbered, Target, object_with, wrong};
use crate::{
    claims::{Grant, Verb},
    contract::handle,
    names::is_dns_label,
    object::DataKind,
    phase::Phase,
    record::{Container, ContainerId, Datum, EntryRef, EntryScope, Field, Fields, Owner},
    value::{Dependency, KeyFile},
};

/// The error for an invalid name of a container or volume.
const NO_LABEL: &str = "the name must be a DNS label: at most 63 of a-z, 0-9 and `-`";

impl Call {
    /// `pod-set.name`
    pub fn pod_set_name(&mut self, handle: handle::PodSet) -> Result<String, Fault> {
        let name = self.pod_set(handle)?.name.clone();
        self.give(&name)
    }

    /// `pod-set.ancestor`
    pub fn pod_set_ancestor(&mut self, handle: handle::PodSet) -> Result<Option<String>, Fault> {
        let ancestor = self.pod_set(handle)?.ancestor.clone();
        self.give_some(ancestor.as_deref())
    }

    /// `pod-set.depends-on`
    pub fn pod_set_depends_on(&mut self, handle: handle::PodSet) -> Result<Vec<Dependency>, Fault> {
        let list = self.pod_set(handle)?.depends_on.clone();
        self.meter.add_bytes(
            list.iter()
                .map(|d| d.pod_set.len() + d.status.len() + 16)
                .sum(),
        )?;
        Ok(list)
    }

    /// `pod-set.count`
    pub fn pod_set_count(&mut self, handle: handle::PodSet) -> Result<u32, Fault> {
        Ok(self.pod_set(handle)?.count)
    }

    /// `pod-set.replicas`
    pub fn pod_set_replicas(&mut self, handle: handle::PodSet) -> Result<u32, Fault> {
        Ok(self.pod_set(handle)?.replicas)
    }

    /// `pod-set.is-indexed`
    pub fn pod_set_is_indexed(&mut self, handle: handle::PodSet) -> Result<bool, Fault> {
        Ok(self.pod_set(handle)?.is_indexed)
    }

    /// `pod-set.backoff-limit`
    pub fn pod_set_backoff_limit(&mut self, handle: handle::PodSet) -> Result<Option<u32>, Fault> {
        let limit = self.integer(handle, Field::BackoffLimit)?;
        Ok(limit.and_then(|limit| u32::try_from(limit).ok()))
    }

    /// `pod-set.set-backoff-limit`
    pub fn pod_set_set_backoff_limit(
        &mut self,
        handle: handle::PodSet,
        limit: u32,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if i32::try_from(limit).is_err() {
            return wrong("the number of pods must be from 0 to 2147483647");
        }
        let limit = Datum::Integer(limit.into());
        self.set(target, Field::BackoffLimit, "", Some(limit))
    }

    /// The value of an integer field. `None` if it is not set.
    fn integer(&mut self, handle: handle::PodSet, field: Field) -> Result<Option<i64>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.may_read(target, field, Some(""))?;
        let entry = self.record_of(target.base).entry(target.scope, field, "");
        Ok(entry.and_then(|entry| entry.datum.as_integer()))
    }

    /// `pod-set.containers`
    pub fn pod_set_containers(
        &mut self,
        handle: handle::PodSet,
    ) -> Result<Vec<handle::Container>, Fault> {
        self.container_handles(handle, Field::Containers)
    }

    /// `pod-set.init-containers`
    pub fn pod_set_init_containers(
        &mut self,
        handle: handle::PodSet,
    ) -> Result<Vec<handle::Container>, Fault> {
        self.container_handles(handle, Field::InitContainers)
    }

    fn container_handles(
        &mut self,
        handle: handle::PodSet,
        list: Field,
    ) -> Result<Vec<handle::Container>, Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        self.may_read(target, list, None)?;
        let record = self.record_of(target.base);
        let handles = record
            .containers(at, list)
            .map(|id| handle::Container::numbered(id.0, target.base))
            .collect();
        self.give_handles(handles)
    }

    /// `pod-set.container`
    pub fn pod_set_container(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<Option<handle::Container>, Fault> {
        self.meter.text(name)?;
        let (target, at) = self.pod_set_target(handle)?;
        let record = self.record_of(target.base);
        let named = record.containers_named(at, name);
        let found = named
            .into_iter()
            .flatten()
            .find(|id| target.base || self.is_in_sight(*id))
            .map(|id| handle::Container::numbered(id.0, target.base));
        self.give_some_handle(found)
    }

    /// Whether this plugin can see that the container exists. A container of another plugin is visible only if a claim orders this plugin
    /// after it; otherwise the answer would depend on the order.
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
        handle: handle::PodSet,
        name: &str,
        image: &str,
    ) -> Result<handle::Container, Fault> {
        self.add_container(handle, Field::Containers, name, image)
    }

    /// `pod-set.add-init-container`
    pub fn pod_set_add_init_container(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        image: &str,
    ) -> Result<handle::Container, Fault> {
        self.add_container(handle, Field::InitContainers, name, image)
    }

    fn add_container(
        &mut self,
        handle: handle::PodSet,
        list: Field,
        name: &str,
        image: &str,
    ) -> Result<handle::Container, Fault> {
        self.meter.text(name)?;
        self.meter.text(image)?;
        let (target, at) = self.pod_set_target(handle)?;
        if !is_dns_label(name) {
            return wrong(NO_LABEL);
        }
        self.may_write(target, Verb::Create, list, name)?;
        if self.is_taken(target, list, name) {
            return wrong(format!("a container `{name}` already exists"));
        }
        self.meter.add_handles(1)?;
        self.meter.container()?;
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
            EntryScope::Container(id),
            Field::Image,
            "",
            Some(image.into()),
        );
        Ok(handle::Container::numbered(id.0, false))
    }

    /// Whether the name of a new container is already taken in a way that this plugin can see. If two plugins use one name in different
    /// lists, the conflict is reported after transform.
    fn is_taken(&self, target: Target, list: Field, name: &str) -> bool {
        [Field::Containers, Field::InitContainers]
            .into_iter()
            .any(|other| {
                let entry = self.record.entry(target.scope, other, name);
                let of_another = |owner| matches!(owner, Owner::Plugin(_)) && owner != self.owner();
                entry.is_some_and(|entry| other == list || !of_another(entry.owner))
            })
    }
}

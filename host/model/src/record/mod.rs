//! The info record: everything about the pods of one TrainJob that plugins can see or change. The host has the only copy.
//!
//! A field is a list of entries with keys, or one entry with an empty key if the field holds one value. The order of entries does not
//! depend on the order in which plugins ran: the entries of resolve come first, then additions grouped by plugin name, each group in
//! the order in which its plugin wrote them.

mod datum;
mod devices;
mod entry_ref;
mod field;
mod fields;
mod mount_path;
mod obeyed;
mod ordered;
mod owner;
mod pod_sets;
mod raw;
mod shape;
mod values;

use std::sync::Arc;

use serde_json::Value;

pub use self::{
    datum::{ContainerId, Datum},
    devices::{Accelerators, DEVICE_OF_RESOURCE, SHARES},
    entry_ref::{Change, EntryPath, EntryRef, EntryScope},
    field::{Field, Level, Permission},
    fields::{Entries, Entry, Fields},
    obeyed::{MAX_OBEYED, ObeyedDomains},
    ordered::{Keyed, Ordered},
    owner::Owner,
    pod_sets::{PodSet, PodSets},
    shape::{ListKey, Shape},
};

/// The container that plugins act on, in every pod set.
pub const NODE_CONTAINER: &str = "node";

/// The record of one TrainJob.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The TrainJob's name, with which pod addresses begin.
    pub job_name: Arc<str>,
    /// The DNS subdomain of the pods.
    pub subdomain: Arc<str>,
    /// The cluster's DNS domain.
    pub cluster_domain: Arc<str>,
    /// Whether the pods have DNS names.
    pub has_host_names: bool,
    /// Fields of [`Level::Job`].
    pub fields: Fields,
    /// The pod sets, in the runtime's order.
    pub pod_sets: PodSets,
    /// The JobSet's spec, with the pod sets in the same order. It has everything for which the record has no field.
    pub template: Option<Arc<Value>>,
    containers: Vec<Container>,
}

/// A container or init container.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its name.
    pub name: Arc<str>,
    /// The position of its pod set.
    pub pod_set: u32,
    /// [`Field::Containers`] or [`Field::InitContainers`].
    pub list: Field,
    /// Who added it.
    pub home: Owner,
    /// The command as the runtime has it.
    pub runtime_command: Option<Arc<[Arc<str>]>>,
    /// The arguments as the runtime has them.
    pub runtime_args: Option<Arc<[Arc<str>]>>,
    /// Fields of [`Level::Container`].
    pub fields: Fields,
}

impl Container {
    /// Whether it is a sidecar: an init container with the restart policy `Always`.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        let policy = self.fields.one(Field::RestartPolicy);
        self.list == Field::InitContainers && policy.and_then(Datum::as_text) == Some("Always")
    }
}

impl Record {
    /// A record without pod sets.
    #[must_use]
    pub fn new(job_name: &str, subdomain: &str, cluster_domain: &str) -> Self {
        Self {
            job_name: job_name.into(),
            subdomain: subdomain.into(),
            cluster_domain: cluster_domain.into(),
            has_host_names: true,
            fields: Fields::default(),
            pod_sets: PodSets::default(),
            template: None,
            containers: Vec::new(),
        }
    }

    /// The pod set at a position.
    #[must_use]
    pub fn pod_set(&self, at: u32) -> Option<&PodSet> {
        self.pod_sets.get(at as usize)
    }

    /// The position of the pod set of that name.
    #[must_use]
    pub fn pod_set_named(&self, name: &str) -> Option<u32> {
        self.pod_sets.named(name)
    }

    /// The container with that id, if it was not removed.
    #[must_use]
    pub fn container(&self, id: ContainerId) -> Option<&Container> {
        let container = self.containers.get(id.0 as usize)?;
        let entry = self
            .pod_set(container.pod_set)?
            .fields
            .get(container.list, &container.name)?;
        (entry.datum == Datum::Container(id)).then_some(container)
    }

    /// The ids of the containers in one list of a pod set, in order.
    pub fn containers(&self, pod_set: u32, list: Field) -> impl Iterator<Item = ContainerId> + '_ {
        let set = self.pod_set(pod_set);
        let placed = set
            .and_then(|set| set.init_order.as_deref())
            .filter(|_| list == Field::InitContainers);
        let listed = set.filter(|_| placed.is_none()).into_iter();
        let listed = listed
            .flat_map(move |set| set.fields.all(list).iter())
            .filter_map(|entry| match entry.datum {
                Datum::Container(id) => Some(id),
                _ => None,
            });
        placed.into_iter().flatten().copied().chain(listed)
    }

    /// The container or init container of that name.
    #[must_use]
    pub fn container_named(&self, pod_set: u32, name: &str) -> Option<ContainerId> {
        let [container, init] = self.containers_named(pod_set, name);
        container.or(init)
    }

    /// The container and the init container of that name, because two plugins may have added one each.
    pub(crate) fn containers_named(&self, pod_set: u32, name: &str) -> [Option<ContainerId>; 2] {
        let set = self.pod_set(pod_set);
        [Field::Containers, Field::InitContainers].map(|list| {
            match set?.fields.get(list, name)?.datum {
                Datum::Container(id) => Some(id),
                _ => None,
            }
        })
    }

    /// The container of that name among `containers`, never an init container.
    #[must_use]
    pub fn main_container(&self, pod_set: u32, name: &str) -> Option<ContainerId> {
        let [container, _] = self.containers_named(pod_set, name);
        container
    }

    /// The container `node` of a pod set, never an init container.
    #[must_use]
    pub fn node_container(&self, pod_set: u32) -> Option<ContainerId> {
        self.main_container(pod_set, NODE_CONTAINER)
    }

    /// Adds a container of the runtime at the end of its list, or replaces the one of that name. Its command and arguments are also kept
    /// as the runtime's.
    pub fn load_container(
        &mut self,
        pod_set: u32,
        list: Field,
        name: &str,
        fields: Fields,
    ) -> ContainerId {
        let as_loaded = |field| fields.one(field).and_then(Datum::as_list).map(Into::into);
        let id = self.new_container(Container {
            name: name.into(),
            pod_set,
            list,
            home: Owner::Runtime,
            runtime_command: as_loaded(Field::Command),
            runtime_args: as_loaded(Field::Args),
            fields,
        });
        if let Some(set) = self.pod_sets.get_mut(pod_set as usize) {
            set.fields.load(list, name, Datum::Container(id));
        }
        id
    }

    /// Adds a container and returns its id. It is in no list until a write to the list names it.
    pub(crate) fn new_container(&mut self, container: Container) -> ContainerId {
        let id = ContainerId(u32::try_from(self.containers.len()).unwrap_or(u32::MAX));
        self.containers.push(container);
        id
    }

    /// The number of ids that are in use.
    #[must_use]
    pub fn container_ids(&self) -> u32 {
        u32::try_from(self.containers.len()).unwrap_or(u32::MAX)
    }

    /// Removes containers from that id on, which are in no list.
    pub(crate) fn forget_containers(&mut self, from: u32) {
        self.containers.truncate(from as usize);
    }

    /// The fields of a scope. `None` if the pod set or container does not exist.
    #[must_use]
    pub fn fields(&self, scope: EntryScope) -> Option<&Fields> {
        match scope {
            EntryScope::Job => Some(&self.fields),
            EntryScope::PodSet(at) => Some(&self.pod_set(at)?.fields),
            EntryScope::Container(id) => Some(&self.containers.get(id.0 as usize)?.fields),
        }
    }

    /// The fields of a scope, mutable.
    pub(crate) fn fields_mut(&mut self, scope: EntryScope) -> Option<&mut Fields> {
        match scope {
            EntryScope::Job => Some(&mut self.fields),
            EntryScope::PodSet(at) => Some(&mut self.pod_sets.get_mut(at as usize)?.fields),
            EntryScope::Container(id) => Some(&mut self.containers.get_mut(id.0 as usize)?.fields),
        }
    }

    /// An entry.
    #[must_use]
    pub fn entry(&self, scope: EntryScope, field: Field, key: &str) -> Option<&Entry> {
        self.fields(scope)?.get(field, key)
    }

    /// The DNS name of a pod within the namespace (JobSet's `JOB-REPLICATEDJOB-JOBINDEX-PODINDEX.SUBDOMAIN`).
    /// `None` if there is no such pod.
    #[must_use]
    pub fn address(&self, pod_set: u32, job_index: u32, pod_index: u32) -> Option<String> {
        let set = self.pod_set(pod_set)?;
        (job_index < set.replicas && pod_index < set.count).then(|| {
            let (job, name, subdomain) = (&self.job_name, &set.name, &self.subdomain);
            format!("{job}-{name}-{job_index}-{pod_index}.{subdomain}")
        })
    }
}

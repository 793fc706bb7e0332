use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{ContainerId, Fields};
use crate::value::Dependency;

/// The pod sets of a record, in order and by name.
#[derive(Clone, Debug, Default)]
pub struct PodSets {
    sets: Vec<PodSet>,
    /// The first position of each name.
    named: BTreeMap<Arc<str>, u32>,
}

impl PodSets {
    /// Adds a pod set at the end.
    pub fn push(&mut self, set: PodSet) {
        let at = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        self.named.entry(set.name.clone()).or_insert(at);
        self.sets.push(set);
    }

    /// Returns the position of the pod set of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<u32> {
        self.named.get(name).copied()
    }
}

impl Deref for PodSets {
    type Target = [PodSet];

    fn deref(&self) -> &[PodSet] {
        &self.sets
    }
}

impl DerefMut for PodSets {
    fn deref_mut(&mut self) -> &mut [PodSet] {
        &mut self.sets
    }
}

/// The pods of one replicated job.
#[derive(Clone, Debug)]
pub struct PodSet {
    /// The replicated job's name.
    pub name: Arc<str>,
    /// Its ancestor label.
    pub ancestor: Option<Arc<str>>,
    /// Pod sets that it waits for.
    pub depends_on: Vec<Dependency>,
    /// The number of pods in each job, at least 1.
    pub count: u32,
    /// The number of jobs.
    pub replicas: u32,
    /// Whether its pods are the nodes.
    pub counts_nodes: bool,
    /// Whether each pod has an index in its job, and a host name that ends in it.
    pub is_indexed: bool,
    /// The init containers in the order of the pod's list, after their placements are resolved. `None` before that, and if no container
    /// has a placement; the order is then that of the record.
    pub init_order: Option<Arc<[ContainerId]>>,
    /// Fields of `Level::PodSet`.
    pub fields: Fields,
}

impl PodSet {
    /// Returns an empty pod set of one pod.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            ancestor: None,
            depends_on: Vec::new(),
            count: 1,
            replicas: 1,
            counts_nodes: false,
            is_indexed: true,
            init_order: None,
            fields: Fields::default(),
        }
    }

    /// The number of pods in all jobs.
    #[must_use]
    pub fn pods(&self) -> u32 {
        self.count.saturating_mul(self.replicas)
    }
}

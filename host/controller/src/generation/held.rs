//! The generations that are held at once, and which of them is used.

use std::sync::Arc;

use trainyard_model::{object::ObjectKind, plan::Plan};

use super::{Generation, share};

/// The generations that a process holds at once.
#[derive(Clone)]
pub struct Held {
    /// The generation of all namespaces that no other one is rolled out to.
    pub running: Arc<Generation>,
    /// The generation that is being rolled out.
    pub rolling: Option<Rolling>,
    /// The generation before the running one. It is used only for TrainJobs that have started with it.
    pub previous: Option<Arc<Generation>>,
}

/// A generation that is being rolled out to a share of namespaces.
#[derive(Clone)]
pub struct Rolling {
    /// The generation.
    pub generation: Arc<Generation>,
    /// The share, in percent. A namespace that is in it is also in every larger one.
    pub percent: u8,
}

impl Held {
    /// Returns what is held if this generation is the only one.
    #[must_use]
    pub const fn only(running: Arc<Generation>) -> Self {
        Self {
            running,
            rolling: None,
            previous: None,
        }
    }

    /// Returns the generation of a namespace. Cluster-scoped objects, whose namespace is empty, have the running one.
    #[must_use]
    pub fn of(&self, namespace: &str) -> &Arc<Generation> {
        let is_in = |rolling: &&Rolling| share::contains(rolling.percent, namespace);
        let rolling = self.rolling.as_ref().filter(|_| !namespace.is_empty());
        let rolling = rolling.filter(is_in);
        rolling.map_or(&self.running, |rolling| &rolling.generation)
    }

    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Generation>> {
        let rolling = self.rolling.iter().map(|rolling| &rolling.generation);
        let previous = self.previous.iter();
        [&self.running].into_iter().chain(rolling).chain(previous)
    }
}

/// The generations that were held when a reconcile, a dry run or a check began, and the one that it uses.
#[derive(Clone)]
pub(crate) struct Pinned {
    held: Arc<Held>,
    generation: Arc<Generation>,
}

impl Pinned {
    pub(super) fn new(held: Arc<Held>, namespace: &str) -> Self {
        let generation = held.of(namespace).clone();
        Self { held, generation }
    }

    /// Returns one for a rendering with a given generation.
    pub(crate) fn only(generation: Arc<Generation>) -> Self {
        Self {
            held: Arc::new(Held::only(generation.clone())),
            generation,
        }
    }

    /// The generation that is used.
    pub(crate) const fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Returns the generations that keep the pinned plan of a TrainJob that has started. The one that is used is the first, if it does.
    pub(crate) fn keeping(&self, plan: &Plan) -> Vec<Arc<Generation>> {
        let is_other = |other: &&Arc<Generation>| !Arc::ptr_eq(other, &self.generation);
        let others = self.held.all().filter(is_other);
        let all = [&self.generation].into_iter().chain(others);
        let keeping = all.filter(|generation| generation.keeps(plan));
        keeping.cloned().collect()
    }

    /// Uses one of the generations that were held at the start from now on.
    pub(crate) fn switch_to(&mut self, generation: &Arc<Generation>) {
        self.generation = generation.clone();
    }

    /// Whether plugins of any held generation emit objects of a kind: a TrainJob that has started has those of the one that it started with.
    pub(crate) fn emits(&self, kind: &ObjectKind) -> bool {
        self.held
            .all()
            .any(|generation| generation.emitted.has(kind))
    }

    /// Returns the maximum number of objects that plugins of any held generation may emit for one TrainJob.
    pub(crate) fn most_objects(&self) -> u64 {
        let all = self.held.all();
        let most = all.map(|generation| generation.renderer().most_objects());
        most.fold(0, u64::max)
    }
}

//! The cluster objects that a TrainJob is rendered from, and the states that were observed.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use kube::core::GroupVersionKind;
use trainyard_model::lookup::LookupKey;

use super::states::RuntimeKey;
use crate::{
    kubernetes::kind_of,
    queue::NamespacedName,
    rbac::{Reach, WatchScope},
};

/// A kind that plugins look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchedKind {
    /// Such as `v1` or `apps/v1`.
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
}

impl WatchedKind {
    /// Returns the kind of a lookup.
    pub(crate) fn of(lookup: &LookupKey) -> Self {
        let (api_version, kind) = lookup.api_version_and_kind();
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
        }
    }

    pub(crate) fn group_version_kind(&self) -> GroupVersionKind {
        kind_of(&self.api_version, &self.kind)
    }
}

/// A source of changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ChangeSource {
    /// The watch of the runtimes of namespaces.
    TrainingRuntimes,
    /// The watch of those of the cluster.
    ClusterTrainingRuntimes,
    /// A watch of objects that plugins look up.
    Objects(WatchedKind, WatchScope),
    /// Discovery: only whether a kind is served.
    Served(WatchedKind),
}

impl ChangeSource {
    /// Returns the kind that has to be watched for it; `None` if it is always watched.
    pub(crate) fn kind(&self) -> Option<&WatchedKind> {
        match self {
            Self::TrainingRuntimes | Self::ClusterTrainingRuntimes => None,
            Self::Objects(kind, _) | Self::Served(kind) => Some(kind),
        }
    }
}

/// An input of a TrainJob in the cluster. The subjects of a source are adjacent in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject {
    pub(crate) source: ChangeSource,
    pub(crate) selector: ObjectSelector,
}

/// The objects of a source that a TrainJob depends on. The namespace is the TrainJob's; for cluster-scoped objects it is ignored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectSelector {
    /// Whether the kind is served.
    Served,
    /// All objects of a namespace.
    All(Arc<str>),
    /// The object with a name.
    One { name: Arc<str>, namespace: Arc<str> },
}

impl Subject {
    /// Returns the subject of a lookup; `None` if its changes are not watched.
    pub(crate) fn of(lookup: &LookupKey, job: &NamespacedName, reach: &Reach) -> Option<Self> {
        let kind = WatchedKind::of(lookup);
        let watched = |name| reach.watched(&kind.api_version, &kind.kind, name);
        let namespace = lookup.namespace(job.namespace.clone(), reach.catalog.clone())?;
        let (source, selector) = match lookup {
            LookupKey::Served { .. } => (ChangeSource::Served(kind), ObjectSelector::Served),
            LookupKey::All { .. } => (
                ChangeSource::Objects(kind.clone(), watched(None)?),
                ObjectSelector::All(namespace),
            ),
            LookupKey::Object(object)
            | LookupKey::Optional(object)
            | LookupKey::Catalog(object) => {
                let watched = watched(Some(&object.name))?;
                let name = object.name.as_str().into();
                (
                    ChangeSource::Objects(kind, watched),
                    ObjectSelector::One { name, namespace },
                )
            }
        };
        Some(Self { source, selector })
    }

    /// Returns the subject of the TrainJob's runtime.
    pub(crate) fn of_runtime(runtime: &RuntimeKey, job: &NamespacedName) -> Self {
        let source = match runtime.namespace {
            Some(_) => ChangeSource::TrainingRuntimes,
            None => ChangeSource::ClusterTrainingRuntimes,
        };
        let selector = ObjectSelector::One {
            name: runtime.name.clone(),
            namespace: job.namespace.clone(),
        };
        Self { source, selector }
    }
}

/// The name of an object, and the versions of its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectHashes<'o> {
    pub(crate) namespace: Option<&'o str>,
    pub(crate) name: &'o str,
    /// A hash of its content.
    pub(crate) content: u64,
    /// A hash of its version.
    pub(crate) version: u64,
}

impl ObjectHashes<'_> {
    fn place(&self) -> u64 {
        hash(&(self.namespace, self.name))
    }

    /// Never 0.
    fn print(&self) -> u64 {
        hash(&(self.namespace, self.name, self.content)) | 1
    }

    /// Never 0.
    fn stamp(&self) -> u64 {
        hash(&(self.namespace, self.name, self.version)) | 1
    }
}

/// The observed state of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SubjectState {
    /// Not known yet.
    #[default]
    Unknown,
    /// The kind is not served.
    NotServed,
    /// The sum of the fingerprints of the objects; 0 if there are none.
    Objects(u64),
}

impl SubjectState {
    /// The kind is served, and there are no objects.
    pub(crate) const NOTHING: Self = Self::Objects(0);

    /// Returns the state in which these objects exist.
    pub(crate) fn of<'o>(objects: impl IntoIterator<Item = ObjectHashes<'o>>) -> Self {
        let prints = objects.into_iter().map(|object| object.print());
        Self::Objects(prints.fold(0, u64::wrapping_add))
    }
}

/// The sum of the versions of all objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// Returns the stamp of these objects.
    pub(crate) fn of<'o>(objects: impl IntoIterator<Item = ObjectHashes<'o>>) -> Self {
        let stamps = objects.into_iter().map(|object| object.stamp());
        Self(stamps.fold(0, u64::wrapping_add))
    }
}

/// The fingerprints of all objects of a source: 24 bytes for each.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    objects: HashMap<u64, Prints>,
    totals: HashMap<u64, Prints>,
}

/// The prints and stamps of an object, or of all objects of a namespace.
#[derive(Clone, Copy, Debug, Default)]
struct Prints {
    print: u64,
    stamp: u64,
}

impl Prints {
    fn replace(&mut self, before: Self, now: Self) {
        self.print = self
            .print
            .wrapping_sub(before.print)
            .wrapping_add(now.print);
        self.stamp = self
            .stamp
            .wrapping_sub(before.stamp)
            .wrapping_add(now.stamp);
    }
}

impl Listing {
    /// Adds or replaces an object. Returns whether its content has changed.
    pub(crate) fn add(&mut self, object: ObjectHashes<'_>) -> bool {
        let now = Prints {
            print: object.print(),
            stamp: object.stamp(),
        };
        let before = self.objects.insert(object.place(), now);
        let total = self.totals.entry(hash(&object.namespace)).or_default();
        total.replace(before.unwrap_or_default(), now);
        before.is_none_or(|before| before.print != now.print)
    }

    /// Removes an object. Returns whether it existed.
    pub(crate) fn remove(&mut self, object: ObjectHashes<'_>) -> bool {
        let before = self.objects.remove(&object.place());
        let total = self.totals.entry(hash(&object.namespace)).or_default();
        total.replace(before.unwrap_or_default(), Prints::default());
        before.is_some()
    }

    /// Returns the state of the selected objects; objects are namespaced or not.
    pub(crate) fn seen(&self, selector: &ObjectSelector, namespaced: bool) -> SubjectState {
        let place = |namespace: &Arc<str>| namespaced.then(|| namespace.to_string());
        let found = match selector {
            ObjectSelector::Served => return SubjectState::NOTHING,
            ObjectSelector::All(namespace) => return self.seen_of(place(namespace).as_deref()),
            ObjectSelector::One { name, namespace } => {
                let place = hash(&(place(namespace).as_deref(), &**name));
                self.objects.get(&place)
            }
        };
        SubjectState::Objects(found.copied().unwrap_or_default().print)
    }

    /// Returns the state of the objects in a namespace, or of cluster-scoped objects.
    pub(crate) fn seen_of(&self, namespace: Option<&str>) -> SubjectState {
        let total = self.totals.get(&hash(&namespace)).copied();
        SubjectState::Objects(total.unwrap_or_default().print)
    }

    /// Returns the versions of the objects in a namespace, or of cluster-scoped objects.
    pub(crate) fn stamp(&self, namespace: Option<&str>) -> Stamp {
        let total = self.totals.get(&hash(&namespace)).copied();
        Stamp(total.unwrap_or_default().stamp)
    }
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

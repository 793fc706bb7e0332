//! What a TrainJob is made of in the cluster, and what was found of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kube::core::GroupVersionKind;
use trainyard_model::lookup::LookupKey;

use super::states::RuntimeKey;
use crate::kubernetes::kind_of;
use crate::queue::Key;
use crate::rbac::{Reach, Watched};

/// A kind, as plugins name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    /// As `v1` or `apps/v1`.
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
}

impl Kind {
    /// The kind that a lookup is of.
    pub(crate) fn of(lookup: &LookupKey) -> Self {
        let (LookupKey::Object {
            api_version, kind, ..
        }
        | LookupKey::All { api_version, kind }
        | LookupKey::Served { api_version, kind }) = lookup;
        Self {
            api_version: api_version.as_str().into(),
            kind: kind.as_str().into(),
        }
    }

    pub(crate) fn group_version_kind(&self) -> GroupVersionKind {
        kind_of(&self.api_version, &self.kind)
    }
}

/// Where news comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// The watch of the runtimes of namespaces.
    TrainingRuntimes,
    /// The watch of those of the cluster.
    ClusterTrainingRuntimes,
    /// A watch for what plugins look up.
    Objects(Kind, Watched),
    /// Discovery: whether a kind is served, and nothing more.
    Served(Kind),
}

impl Source {
    /// The kind that has to be followed for it; none where it is followed anyway.
    pub(crate) fn kind(&self) -> Option<&Kind> {
        match self {
            Self::TrainingRuntimes | Self::ClusterTrainingRuntimes => None,
            Self::Objects(kind, _) | Self::Served(kind) => Some(kind),
        }
    }
}

/// Something of the cluster that a TrainJob is made of. Those of a source lie side by side in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject {
    pub(crate) source: Source,
    pub(crate) part: Part,
}

/// A part of a source. The namespace is the TrainJob's: where objects have none it counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// Whether there is such a kind.
    Served,
    /// All objects of a namespace.
    All(Arc<str>),
    /// The object of a name.
    One { name: Arc<str>, namespace: Arc<str> },
}

impl Subject {
    /// What a TrainJob's plugin looks up; none where nothing tells of its changes.
    pub(crate) fn of(lookup: &LookupKey, job: &Key, reach: &Reach) -> Option<Self> {
        let kind = Kind::of(lookup);
        let watched = |name| reach.watched(&kind.api_version, &kind.kind, name);
        let namespace = job.namespace.clone();
        let (source, part) = match lookup {
            LookupKey::Served { .. } => (Source::Served(kind), Part::Served),
            LookupKey::All { .. } => (
                Source::Objects(kind.clone(), watched(None)?),
                Part::All(namespace),
            ),
            LookupKey::Object { name, .. } => {
                let watched = watched(Some(name))?;
                let name = name.as_str().into();
                (
                    Source::Objects(kind, watched),
                    Part::One { name, namespace },
                )
            }
        };
        Some(Self { source, part })
    }

    /// The runtime that a TrainJob names.
    pub(crate) fn of_runtime(runtime: &RuntimeKey, job: &Key) -> Self {
        let source = match runtime.namespace {
            Some(_) => Source::TrainingRuntimes,
            None => Source::ClusterTrainingRuntimes,
        };
        let part = Part::One {
            name: runtime.name.clone(),
            namespace: job.namespace.clone(),
        };
        Self { source, part }
    }
}

/// An object's place, and what of it counts as a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'o> {
    pub(crate) namespace: Option<&'o str>,
    pub(crate) name: &'o str,
    /// Another number for other content.
    pub(crate) content: u64,
    /// Another number for another version, whatever changed.
    pub(crate) version: u64,
}

impl Version<'_> {
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

/// What was found of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nobody knows (yet).
    #[default]
    Unknown,
    /// There is no such kind.
    NotServed,
    /// The sum of the fingerprints of what was found; 0 is nothing.
    Objects(u64),
}

impl Seen {
    /// Nothing is there, but the kind.
    pub(crate) const NOTHING: Self = Self::Objects(0);

    /// These objects are there.
    pub(crate) fn of<'o>(objects: impl IntoIterator<Item = Version<'o>>) -> Self {
        let prints = objects.into_iter().map(|object| object.print());
        Self::Objects(prints.fold(0, u64::wrapping_add))
    }
}

/// Which versions of which objects there are: the sum of their stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// That of these objects.
    pub(crate) fn of<'o>(objects: impl IntoIterator<Item = Version<'o>>) -> Self {
        let stamps = objects.into_iter().map(|object| object.stamp());
        Self(stamps.fold(0, u64::wrapping_add))
    }
}

/// A list of all objects of a source, as far as it tells whether something changed: 24 bytes for each.
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
    /// One more object, or another version of one. Says whether that is another content.
    pub(crate) fn add(&mut self, object: Version<'_>) -> bool {
        let now = Prints {
            print: object.print(),
            stamp: object.stamp(),
        };
        let before = self.objects.insert(object.place(), now);
        let total = self.totals.entry(hash(&object.namespace)).or_default();
        total.replace(before.unwrap_or_default(), now);
        before.is_none_or(|before| before.print != now.print)
    }

    /// An object less. Says whether it was there.
    pub(crate) fn remove(&mut self, object: Version<'_>) -> bool {
        let before = self.objects.remove(&object.place());
        let total = self.totals.entry(hash(&object.namespace)).or_default();
        total.replace(before.unwrap_or_default(), Prints::default());
        before.is_some()
    }

    /// What it shows of a part; objects have namespaces or not.
    pub(crate) fn seen(&self, part: &Part, namespaced: bool) -> Seen {
        let place = |namespace: &Arc<str>| namespaced.then(|| namespace.to_string());
        let found = match part {
            Part::Served => return Seen::NOTHING,
            Part::All(namespace) => return self.seen_of(place(namespace).as_deref()),
            Part::One { name, namespace } => {
                let place = hash(&(place(namespace).as_deref(), &**name));
                self.objects.get(&place)
            }
        };
        Seen::Objects(found.copied().unwrap_or_default().print)
    }

    /// What it shows of the objects of a namespace, or of those without one.
    pub(crate) fn seen_of(&self, namespace: Option<&str>) -> Seen {
        let total = self.totals.get(&hash(&namespace)).copied();
        Seen::Objects(total.unwrap_or_default().print)
    }

    /// Which versions it has of the objects of a namespace, or of those without one.
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

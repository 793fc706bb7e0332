//! What the calls of a reconcile return, as far as its decisions depend on it.

use std::sync::Arc;

use trainyard_render::RenderedObject;

use super::{
    error::ReconcileError, object_ref::ObjectRef, object_version::ObjectVersion, vouch::Trust,
};

/// A value with its facts.
#[derive(Clone, Debug)]
pub(crate) struct WithFacts<F, V> {
    pub(crate) facts: F,
    pub(crate) value: V,
}

/// The facts of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotFacts {
    pub(crate) marks: SnapshotMarks,
    /// How far it is used.
    pub(crate) trust: Trust,
    /// Whether it has a plan. A snapshot of the reference has none.
    pub(crate) has_plan: bool,
    /// The objects beside the JobSet.
    pub(crate) objects: Arc<[ObjectRef]>,
}

/// The marks of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotMarks {
    /// The version of the snapshot with these marks.
    pub(crate) at: ObjectVersion,
    /// Its JobSet has run, and the snapshot is immutable.
    pub(crate) started: bool,
    /// Its JobSet was deleted and has to be recreated.
    pub(crate) recreate: bool,
}

/// The marks of a snapshot, if there is one.
#[derive(Debug)]
pub(crate) enum FoundMarks {
    /// There is no snapshot.
    Missing,
    /// The snapshot belongs to the TrainJob.
    Ours(SnapshotMarks),
    /// The snapshot belongs to another owner.
    Foreign(ReconcileError),
}

/// The facts of a rendering.
#[derive(Debug)]
pub(crate) struct RenderedFacts {
    /// Whether the snapshot in the cluster is the one that it was rendered from.
    pub(crate) saved: bool,
    /// The digest of the inputs for a suspended JobSet; empty for one that is to run, and for that of a TrainJob that has started.
    pub(crate) inputs: Box<str>,
    /// Whether the JobSet expires after its end.
    pub(crate) expires: bool,
    /// The objects beside the JobSet, in their order.
    pub(crate) objects: Vec<ObjectToWrite>,
    /// Its warnings for the TrainJob's author.
    pub(crate) warnings: Vec<String>,
}

/// A rendered object beside the JobSet.
#[derive(Debug)]
pub(crate) struct ObjectToWrite {
    pub(crate) object: ObjectRef,
    pub(crate) rendered: RenderedObject,
    /// A number that differs if the content does.
    pub(crate) content: u64,
}

/// The state of an object.
#[derive(Debug)]
pub(crate) enum ObjectState {
    /// It does not exist.
    Missing,
    /// It belongs to the TrainJob, and has this version.
    Ours(ObjectVersion),
    /// It belongs to another owner, or is being deleted.
    Unusable(ReconcileError),
    /// No loaded plugin emits objects of its kind, so it was not read.
    NotEmitted,
}

/// The owner of the JobSet with a TrainJob's name.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The TrainJob, or the JobSet no longer exists.
    OursOrGone,
    /// Another owner.
    Foreign(ReconcileError),
}

/// The facts of a suspended JobSet in the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuspendedFacts {
    pub(crate) at: ObjectVersion,
    /// Whether it is marked as started.
    pub(crate) started: bool,
    /// Whether pods of it are running or terminating.
    pub(crate) active: bool,
    /// The digest of its inputs, if it has one.
    pub(crate) inputs: Option<Box<str>>,
    /// Whether its Jobs may still have entries that were removed from the placement of its pods.
    pub(crate) removed: bool,
}

/// The facts of the changes that a JobSet needs for the wanted placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacementFacts {
    /// Whether its Jobs may have entries that are not wanted.
    pub(crate) loses: bool,
    /// Whether its pod templates change.
    pub(crate) moves: bool,
    /// Whether the JobSet already notes the entries that its Jobs have to lose.
    pub(crate) noted: bool,
}

/// A Job that still has removed entries of its placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldJob {
    pub(crate) name: Box<str>,
    pub(crate) uid: Option<Box<str>>,
    pub(crate) deleting: bool,
}

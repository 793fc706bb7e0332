//! The results of the steps of a reconcile.

use std::sync::Arc;

use crate::reconcile::{
    failure::ReconcileFailure,
    inputs::Inputs,
    last_reconcile::{Applied, AppliedObject},
    object_ref::ObjectRef,
    object_version::ObjectVersion,
    step::Basis,
};

/// The observations of this reconcile; `None` if they were not made yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Observations {
    /// The digest of the TrainJob's inputs.
    pub(crate) inputs: Option<Inputs>,
    /// The TrainJob was read and is valid.
    pub(crate) train_job: Option<()>,
    /// The TrainJob in the store is current.
    pub(crate) live_train_job: Option<()>,
    /// The TrainJob in the store is current, and there is no JobSet.
    pub(crate) absence: Option<()>,
    /// The snapshot; `Some(None)` if there is none.
    pub(crate) snapshot: Option<Option<SnapshotFacts>>,
    pub(crate) snapshot_marks: Option<Option<SnapshotMarks>>,
    /// The current runtime was read.
    pub(crate) runtime: Option<()>,
    /// The results of the renderings.
    pub(crate) renderings: Vec<(Basis, Rendering)>,
    /// The number of rounds of lookups for them, which is bounded.
    pub(crate) rounds: usize,
    /// The objects that the snapshot lists.
    pub(crate) listed: Option<Arc<[AppliedObject]>>,
    /// Their observed states.
    pub(crate) listed_objects: Vec<(ObjectRef, ObjectState)>,
    /// The owner of the JobSet with the TrainJob's name.
    pub(crate) owner: Option<Owner>,
    /// The suspended JobSet in the API server.
    pub(crate) live: Option<LiveJobSet>,
    /// The changes that the JobSet needs for the wanted placement.
    pub(crate) placement: Option<Placement>,
    /// The Jobs of the JobSet that still have removed entries of their placement.
    pub(crate) jobs: Option<Vec<OldJob>>,
    /// Why Jobs or pods of the running JobSet were not created; `Some(None)` if no failure is known.
    pub(crate) creation: Option<Option<ReconcileFailure>>,
    /// Another JobSet could be created in place of the existing one.
    pub(crate) creatable: Option<()>,
}

/// The effects of this reconcile's actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Effects {
    /// Interests are registered: later changes make the rendering outdated.
    pub(crate) begun: bool,
    /// The snapshot that was written in place of a missing or unusable one.
    pub(crate) saved: Option<SnapshotFacts>,
    /// The JobSet was changed so that its Jobs lose the removed entries of their placement.
    pub(crate) relocated: bool,
    /// The JobSet was applied, suspended or unsuspended.
    pub(crate) job_set_written: bool,
    /// The JobSet was deleted.
    pub(crate) job_set_deleted: bool,
    /// It was noted that the JobSet ended unseen.
    pub(crate) end_noted: bool,
    /// The result is remembered for the next reconcile.
    pub(crate) remembered: bool,
    /// The state of the TrainJob in memory is up to date.
    pub(crate) memory_updated: bool,
    /// The status was written.
    pub(crate) status_written: bool,
    /// The annotation about the last error was written or removed.
    pub(crate) error_written: bool,
}

/// The facts of a snapshot that decisions need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotFacts {
    pub(crate) at: ObjectVersion,
    /// Whether it was marked as started when it was read.
    pub(crate) was_started: bool,
    /// Whether it is marked as started now.
    pub(crate) started: bool,
    /// Whether it is marked because its JobSet was deleted and has to be recreated.
    pub(crate) recreate: bool,
    /// Whether its content may be used. If not, an equal snapshot does not have to be written.
    pub(crate) trusted: bool,
    /// Whether it has a plan. A snapshot of the reference has none.
    pub(crate) has_plan: bool,
    /// The objects beside the JobSet.
    pub(crate) objects: Arc<[ObjectRef]>,
}

/// The marks of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotMarks {
    pub(crate) at: ObjectVersion,
    /// The error if it does not belong to the TrainJob.
    pub(crate) foreign: Option<ReconcileFailure>,
    pub(crate) started: bool,
    pub(crate) recreate: bool,
}

/// The result of a rendering that did not fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rendering {
    /// Plugins look up objects of the cluster.
    Needs,
    /// The objects were looked up, and the TrainJob is rendered again.
    LookedUp,
    /// It is complete.
    Rendered(RenderedFacts),
}

/// The facts of a rendering that decisions need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RenderedFacts {
    /// Whether the snapshot in the cluster is the one that it was rendered from.
    pub(crate) saved: bool,
    /// The digest of the inputs for a suspended JobSet; empty for one that is to run.
    pub(crate) inputs: Box<str>,
    /// Whether the JobSet expires after its end.
    pub(crate) expires: bool,
    /// The objects beside the JobSet, in their order.
    pub(crate) objects: Vec<RenderedObjectFacts>,
}

/// The facts of an object beside the JobSet that decisions need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RenderedObjectFacts {
    pub(crate) object: ObjectRef,
    /// A number that differs if the content does.
    pub(crate) content: u64,
    /// Whether it has keys, which are generated when it is created.
    pub(crate) has_keys: bool,
    /// Its observed state.
    pub(crate) state: Option<ObjectState>,
    /// Its last apply, if it was written in this reconcile.
    pub(crate) written: Option<Option<Applied>>,
}

/// The observed state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ObjectState {
    /// It does not exist.
    Missing,
    /// It belongs to the TrainJob, and has this version.
    Ours(Option<Box<str>>),
    /// It belongs to another owner, or is being deleted.
    Unusable(ReconcileFailure),
    /// No loaded plugin emits objects of its kind, so it was not read.
    NotEmitted,
}

/// The owner of the JobSet with a TrainJob's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The TrainJob, or the JobSet no longer exists.
    OursOrGone,
    /// Another owner.
    Foreign(ReconcileFailure),
}

/// The facts of a suspended JobSet that decisions need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LiveJobSet {
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

/// The changes that a JobSet needs for the wanted placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    /// Whether its Jobs may have entries that are not wanted.
    pub(crate) loses: bool,
    /// Whether its pod templates change.
    pub(crate) moves: bool,
    /// Whether the JobSet already notes the entries that its Jobs have to lose.
    pub(crate) noted: bool,
}

/// A Job that still has removed entries of its placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OldJob {
    pub(crate) name: Box<str>,
    pub(crate) uid: Option<Box<str>>,
    pub(crate) deleting: bool,
}

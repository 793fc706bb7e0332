//! The steps of a reconcile: observations and actions. An action has everything that its write depends on.

use std::{fmt, sync::Arc};

use super::{last_reconcile::LastReconcile, object_ref::ObjectRef, object_version::ObjectVersion};
use crate::watch::TrainJobStatus;

/// One step of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// An observation of something that is not known yet.
    Observe(Observe),
    /// A change.
    Act(Action),
}

/// An observation. Observations never write to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Observe {
    /// The digest of the TrainJob's inputs.
    Inputs,
    /// Whether the TrainJob is valid.
    TrainJob,
    /// Whether the TrainJob in the store is current.
    LiveTrainJob,
    /// Whether, in addition, there is no JobSet.
    Absence,
    Snapshot,
    SnapshotMarks,
    /// The current runtime of the TrainJob.
    Runtime,
    /// The rendering of the TrainJob.
    Rendering(Basis),
    /// The objects that plugins look up while it is rendered.
    Lookups(Basis),
    /// The objects that the snapshot lists.
    ListedObjects,
    /// One object of that list.
    ListedObject(ObjectRef),
    /// A rendered object.
    Object(ObjectRef),
    /// The owner of the JobSet with the TrainJob's name.
    JobSetOwner,
    /// The suspended JobSet with this UID in the API server.
    LiveJobSet {
        uid: Box<str>,
    },
    /// The changes that it needs for the wanted placement.
    Placement(PlacementSource),
    /// Its Jobs that still have entries which were removed from their placement.
    Jobs,
    /// Whether the Jobs and pods of the running JobSet were created.
    Creation,
    /// Whether another JobSet could be created in its place; with `held`, one that stays suspended at first.
    Creatable {
        held: bool,
    },
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Forgets the result of the last reconcile, and starts to register interests.
    Begin,
    /// Creates the snapshot of the rendering.
    CreateSnapshot(Basis),
    /// Replaces the existing snapshot with it.
    ReplaceSnapshot { basis: Basis, at: ObjectVersion },
    /// Marks the snapshot.
    MarkSnapshot {
        mark: SnapshotMark,
        at: ObjectVersion,
    },
    /// Applies an object beside the JobSet; with force only over one that the TrainJob owns.
    ApplyObject { object: ObjectRef, force: bool },
    /// Creates an object beside the JobSet, with its keys if it is a Secret.
    CreateObject(ObjectRef),
    /// Applies the JobSet.
    ApplyJobSet {
        /// The suspended JobSet that it replaces; `None` if there is none.
        over: Option<ObjectVersion>,
        /// Whether it stays suspended for now, and notes the entries that its Jobs have to lose.
        held: bool,
        /// Whether it is marked as recreated.
        recreated: bool,
    },
    /// Suspends the JobSet with this UID, and changes nothing else.
    Suspend { uid: Box<str> },
    /// Sets the wanted placement of a suspended JobSet, and notes the entries that its Jobs have to lose.
    Relocate(ObjectVersion),
    /// Unsuspends a JobSet that has run, with the wanted placement.
    Resume(ObjectVersion),
    /// Deletes the JobSet.
    DeleteJobSet(ObjectVersion),
    /// Deletes a Job, which JobSet recreates.
    DeleteJob {
        name: Box<str>,
        uid: Option<Box<str>>,
    },
    /// Notes in memory that the JobSet ended without its end being observed.
    NoteUnseenEnd,
    /// Remembers the result of this reconcile, and forgets the deleted JobSet that it has recreated.
    Remember(LastReconcile),
    /// Updates the other state of the TrainJob in memory, and releases the large values of this reconcile.
    UpdateMemory(MemoryUpdate),
    /// Writes the status.
    WriteStatus(Arc<TrainJobStatus>),
    /// Writes the annotation about the error; `None` removes it.
    WriteError(Option<Arc<str>>),
    /// Forgets the last state of a deleted JobSet, which is in the status.
    ForgetDeletedJobSet,
}

/// What a TrainJob is rendered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Basis {
    pub(crate) source: RuntimeSource,
    /// Whether its JobSet may have run, so that plan and lookups are pinned.
    pub(crate) started: bool,
}

/// The runtime that a TrainJob is rendered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RuntimeSource {
    /// The runtime in its snapshot.
    Snapshot,
    /// The current runtime.
    Runtime,
}

impl RuntimeSource {
    /// Returns the basis for a TrainJob whose JobSet may have run.
    pub(crate) const fn started(self) -> Basis {
        self.basis(true)
    }

    /// Returns the basis for a TrainJob.
    pub(crate) const fn basis(self, started: bool) -> Basis {
        Basis {
            source: self,
            started,
        }
    }
}

/// The wanted placement of a JobSet's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PlacementSource {
    /// The placement of the rendering, with which the JobSet is applied as a whole.
    Applied,
    /// The placement of the rendering.
    Rendered,
    /// The placement by plugins as noted in the snapshot, with the current patches.
    Noted,
    /// The live placement, with the current patches.
    Live,
}

/// The marks of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotMark {
    /// Its JobSet has run, and the snapshot is immutable.
    pub(crate) started: bool,
    /// Whether its JobSet was deleted and has to be recreated; `Some(false)` removes the mark.
    pub(crate) recreate: Option<bool>,
}

impl SnapshotMark {
    /// The JobSet has run.
    pub(crate) const STARTED: Self = Self {
        started: true,
        recreate: None,
    };
    /// The JobSet was recreated.
    pub(crate) const RECREATED: Self = Self {
        started: false,
        recreate: Some(false),
    };
}

/// The state of a TrainJob in memory at the end of a reconcile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MemoryUpdate {
    pub(crate) interests: InterestChange,
    /// Whether the result of the last reconcile is forgotten.
    pub(crate) forget_last: bool,
    /// Whether the last state of a deleted JobSet is forgotten.
    pub(crate) forget_deleted_job_set: bool,
}

/// The change of a TrainJob's interests in cluster objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum InterestChange {
    /// They stay unchanged.
    #[default]
    Keep,
    /// Those of this reconcile replace the earlier ones.
    Settle,
    /// They are dropped.
    Forget,
}

/// The reason for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The TrainJob has no JobSet.
    NoJobSet,
    /// Its JobSet has never run and may be outdated.
    NeverRun,
    /// Its JobSet has run, and is resumed or stays suspended.
    HasRun,
    /// The TrainJob is to be suspended, and its JobSet runs.
    ToSuspend,
    /// An object that its running JobSet uses may be missing or outdated.
    Running,
    /// Pods of its running JobSet may not have been created.
    PodsMissing,
    /// The JobSet of its name has another owner.
    ForeignJobSet,
    /// The snapshot is missing, unusable or outdated.
    SnapshotOutdated,
    /// The JobSet that ran was deleted before it ended.
    JobSetDeleted,
    /// There is another JobSet in the place of the one that was deleted.
    JobSetRecreated,
    /// It is not known how the JobSet ended.
    EndUnknown,
    /// Fields changed that JobSet does not let change.
    Immutable,
    /// Jobs have the placement of an earlier admission.
    OldPlacement,
    /// The TrainJob exceeded its deadline.
    Overdue,
    /// The status is outdated.
    StatusOutdated,
    /// The annotation about the last error is outdated.
    ErrorOutdated,
    /// The reconcile is complete.
    Ends,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoJobSet => "the TrainJob has no JobSet",
            Self::NeverRun => "the JobSet has never run and may be outdated",
            Self::HasRun => "the JobSet has run and is suspended",
            Self::ToSuspend => "the TrainJob is to be suspended and its JobSet runs",
            Self::Running => "the JobSet runs, and it or its TrainJob has changed",
            Self::PodsMissing => "pods of the running JobSet may not have been created",
            Self::ForeignJobSet => "the JobSet of this name does not belong to the TrainJob",
            Self::SnapshotOutdated => "the snapshot is missing, unusable or outdated",
            Self::JobSetDeleted => "the JobSet was deleted before it ended",
            Self::JobSetRecreated => "the JobSet was recreated",
            Self::EndUnknown => "the JobSet was deleted and it is not known how it ended",
            Self::Immutable => "fields changed that are immutable in a JobSet",
            Self::OldPlacement => "Jobs still have the placement of an earlier admission",
            Self::Overdue => "the TrainJob exceeded its active deadline",
            Self::StatusOutdated => "the status is outdated",
            Self::ErrorOutdated => "the annotation about the last error is outdated",
            Self::Ends => "the reconcile is complete",
        })
    }
}

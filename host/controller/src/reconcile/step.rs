//! What a reconcile can do next: ask for something, or change something. All that a write depends on is in its action.

use std::fmt;
use std::sync::Arc;

use super::object_ref::ObjectRef;
use super::observed::{LastReconcile, Version};
use crate::watch::TrainJobStatus;

/// One step of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Something is asked for that is not known yet.
    Observe(Observe),
    /// Something is changed.
    Act(Action),
}

/// What can be asked for. No observation writes anything to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Observe {
    /// The digest of what the TrainJob is rendered from.
    Inputs,
    /// Whether the TrainJob is valid.
    TrainJob,
    /// Whether the API server has the TrainJob as the store has it: of two watches one may be behind.
    LiveTrainJob,
    /// The same, and whether it really has no JobSet.
    Absence,
    /// The snapshot.
    Snapshot,
    /// The marks of the snapshot.
    SnapshotMarks,
    /// The runtime that the TrainJob names, as it is now.
    Runtime,
    /// What the TrainJob becomes.
    Rendering(Basis),
    /// The objects that plugins ask for while it is rendered.
    Lookups(Basis),
    /// The objects that the snapshot lists.
    ListedObjects,
    /// One of them.
    ListedObject(ObjectRef),
    /// An object that was rendered.
    Object(ObjectRef),
    /// Who owns the JobSet of the TrainJob's name.
    JobSetOwner,
    /// The JobSet of this UID as the API server has it, which has to be suspended.
    LiveJobSet { uid: Box<str> },
    /// What it has to change for its pods to be placed as wanted.
    Placement(Wanted),
    /// Its Jobs that have what was removed from the placement of their pods.
    Jobs,
    /// Whether another JobSet could be created in its place; `held` is the one whose Jobs lose something first.
    Creatable { held: bool },
}

/// What can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Forgets what the last reconcile left, and notes from now on what changes.
    Begin,
    /// Creates the snapshot that the rendering made.
    CreateSnapshot(Basis),
    /// Writes it in the place of the one that exists.
    ReplaceSnapshot { basis: Basis, at: Version },
    /// Marks the snapshot.
    MarkSnapshot { mark: Mark, at: Version },
    /// Applies an object beside the JobSet; by force only over one that is the TrainJob's.
    ApplyObject { object: ObjectRef, force: bool },
    /// Creates an object beside the JobSet, with its keys if it is a Secret.
    CreateObject(ObjectRef),
    /// Applies the JobSet.
    ApplyJobSet {
        /// The suspended JobSet that it is applied over; `None` if there is none of that name.
        over: Option<Version>,
        /// Whether it stays suspended for now, and notes what its Jobs have to lose.
        held: bool,
        /// Whether it says that it takes the place of one that was deleted.
        recreated: bool,
    },
    /// Suspends the JobSet of this UID, and changes nothing else of it.
    Suspend { uid: Box<str> },
    /// Places the pods of a suspended JobSet as wanted, and notes what its Jobs have to lose.
    Relocate(Version),
    /// Unsuspends a JobSet that has run, with its pods placed as wanted.
    Resume(Version),
    /// Deletes the JobSet.
    DeleteJobSet(Version),
    /// Deletes a Job, which JobSet creates again.
    DeleteJob {
        name: Box<str>,
        uid: Option<Box<str>>,
    },
    /// Notes in memory that the JobSet ended and nobody saw how.
    NoteUnseenEnd,
    /// Keeps in memory what this reconcile left.
    Remember(LastReconcile),
    /// Updates what else is kept in memory of the TrainJob.
    Settle(Settle),
    /// Writes the status.
    WriteStatus(Arc<TrainJobStatus>),
    /// Writes the annotation that says why the TrainJob can't be reconciled; `None` removes it.
    WriteError(Option<Arc<str>>),
    /// Forgets how the last JobSet went: the status says it.
    ForgetDeparted,
}

/// From what a TrainJob is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Basis {
    pub(crate) source: Source,
    /// Whether its JobSet may have run: then plan and lookups are pinned.
    pub(crate) started: bool,
}

/// Which runtime a TrainJob is rendered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// That of its snapshot.
    Snapshot,
    /// The runtime as it is now.
    Runtime,
}

impl Source {
    /// A rendering of a TrainJob whose JobSet may have run.
    pub(crate) const fn started(self) -> Basis {
        self.basis(true)
    }

    /// A rendering of a TrainJob.
    pub(crate) const fn basis(self, started: bool) -> Basis {
        Basis {
            source: self,
            started,
        }
    }
}

/// Where the pods of a JobSet are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// Where the rendering places them; the JobSet is applied as a whole.
    Applied,
    /// Where the rendering places them.
    Rendered,
    /// Where the snapshot notes that plugins placed them, and by today's patches.
    Noted,
    /// Where they are, and by today's patches.
    Live,
}

/// What a snapshot is marked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    /// Its JobSet has run; the snapshot can't change any more.
    pub(crate) started: bool,
    /// Its JobSet was deleted and is to be created again, or is there again.
    pub(crate) recreate: Option<bool>,
}

impl Mark {
    /// The JobSet has run.
    pub(crate) const STARTED: Self = Self {
        started: true,
        recreate: None,
    };
    /// There is a JobSet again.
    pub(crate) const RECREATED: Self = Self {
        started: false,
        recreate: Some(false),
    };
}

/// What is kept in memory of a TrainJob when a reconcile has done its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settle {
    pub(crate) interests: Interests,
    /// Whether what the last reconcile left is forgotten.
    pub(crate) forget_last: bool,
    /// Whether it is forgotten how the last JobSet went.
    pub(crate) forget_departed: bool,
}

/// What becomes of the interests of a TrainJob in objects of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Interests {
    /// They stay as they are.
    #[default]
    Stay,
    /// Those of this reconcile count from now on.
    Settle,
    /// Nothing changes the TrainJob any more.
    Forget,
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The TrainJob has no JobSet.
    NoJobSet,
    /// Its JobSet has never run, and may not be what the TrainJob wants.
    NeverRun,
    /// Its JobSet has run, and goes on or stays suspended.
    HasRun,
    /// The TrainJob is to be suspended, and its JobSet runs.
    ToSuspend,
    /// Something that its JobSet runs with may be missing or outdated.
    Running,
    /// The JobSet of its name is not its own.
    ForeignJobSet,
    /// The snapshot is missing, unusable, or not what the JobSet is rendered from.
    SnapshotOutdated,
    /// The JobSet that ran was deleted before it ended.
    JobSetDeleted,
    /// There is another JobSet in the place of the one that was deleted.
    JobSetRecreated,
    /// It is not known how the JobSet went.
    EndUnknown,
    /// Fields changed that JobSet does not let change.
    Immutable,
    /// Jobs have the placement of an earlier admission.
    OldPlacement,
    /// The TrainJob exceeded its deadline.
    Overdue,
    /// The status differs from what is known.
    StatusOutdated,
    /// The annotation about the last error differs from what is known.
    ErrorOutdated,
    /// The reconcile has done its part.
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
            Self::ForeignJobSet => "the JobSet of this name is not the TrainJob's",
            Self::SnapshotOutdated => "the snapshot is not what the JobSet is rendered from",
            Self::JobSetDeleted => "the JobSet was deleted before it ended",
            Self::JobSetRecreated => "the JobSet was created again",
            Self::EndUnknown => "the JobSet is gone and it is not known how it ended",
            Self::Immutable => "fields changed that are immutable in a JobSet",
            Self::OldPlacement => "Jobs still have the placement of an earlier admission",
            Self::Overdue => "the TrainJob exceeded its active deadline",
            Self::StatusOutdated => "the status is outdated",
            Self::ErrorOutdated => "the annotation about the last error is outdated",
            Self::Ends => "the reconcile has done its part",
        })
    }
}

//! The known state of a TrainJob during a reconcile. It can be copied, compared and hashed.
//!
//! A fact that was not observed yet is `None`. Large values (the TrainJob, the snapshot, the rendered JobSet) are not in here: see
//! [`Artifacts`](super::artifacts::Artifacts).

mod learn;
mod observations;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
pub(crate) use learn::{Effect, Fact};
pub(crate) use observations::{
    Effects, LiveJobSet, ObjectState, Observations, OldJob, Owner, Placement, RenderedFacts,
    RenderedObjectFacts, Rendering, SnapshotFacts, SnapshotMarks,
};

use super::{failure::ReconcileFailure, last_reconcile::LastReconcile, status, step::Step};
use crate::watch::{DesiredState, JobSetState, TrainJobState, TrainJobStatus};

/// The known state of a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Observed {
    /// The TrainJob when the reconcile began.
    pub(crate) job: StoredJob,
    /// Why the JobSet could not be decoded when the reconcile began. Then nothing is changed.
    pub(crate) unreadable_job_set: Option<ReconcileFailure>,
    /// The cached state when the reconcile began, which selects the branch of the reconcile.
    pub(crate) initial: CachedJobSet,
    /// The cached state as of the last step. The status is derived from it.
    pub(crate) current: CachedJobSet,
    /// The result of the last reconcile, if it was of the same TrainJob.
    pub(crate) last: Option<LastReconcile>,
    /// Whether something that the JobSet was rendered from has changed since.
    pub(crate) outdated: bool,
    /// Whether its reconciles have failed for so long that the cause is unlikely to be temporary (`TEMPORARY`).
    pub(crate) persists: bool,
    /// The last write of its annotation, if it was of the same TrainJob.
    pub(crate) annotated: Option<AnnotationWrite>,
    /// The observations of this reconcile.
    pub(crate) observations: Observations,
    /// The actions of this reconcile.
    pub(crate) effects: Effects,
    /// The steps of this reconcile that failed.
    pub(crate) failures: Vec<(Step, ReconcileFailure)>,
}

/// A TrainJob in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoredJob {
    /// It does not exist.
    Missing,
    /// It cannot be decoded.
    Unreadable(ReconcileFailure),
    /// Its facts.
    Found(Arc<JobFacts>),
}

/// The facts of a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JobFacts {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Box<str>,
    pub(crate) created: Timestamp,
    pub(crate) deleting: bool,
    pub(crate) desired: DesiredState,
    pub(crate) status: TrainJobStatus,
    /// Its annotation about the last error.
    pub(crate) error: Option<Box<str>>,
    /// A hash of everything that the TrainJob is rendered from.
    pub(crate) fingerprint: u64,
}

impl JobFacts {
    /// Returns the facts of a TrainJob in the store.
    pub(super) fn of(name: &Arc<str>, job: &TrainJobState) -> Self {
        Self {
            name: name.clone(),
            uid: job.uid.clone(),
            created: job.created,
            deleting: job.deleting,
            desired: job.desired.clone(),
            status: job.status.clone(),
            error: job.error.clone(),
            fingerprint: job.fingerprint(),
        }
    }

    /// Whether its status shows that its JobSet has run.
    pub(crate) fn has_run(&self) -> bool {
        status::has_run(&self.status)
    }

    /// Whether its status shows that it had a JobSet.
    pub(crate) fn had_job_set(&self) -> bool {
        !self.status.jobs_status.is_empty()
    }

    /// Whether its status shows that it is suspended, and so that its JobSet has not ended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.status.is_true(status::SUSPENDED).is_some()
    }
}

/// The cached state of a TrainJob's JobSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CachedJobSet {
    /// The JobSet of its name.
    pub(crate) job_set: StoredJobSet,
    /// The last state of its deleted JobSet, if it is known.
    pub(crate) deleted_job_set: Option<Arc<JobSetState>>,
}

impl CachedJobSet {
    /// Returns the JobSet if it belongs to the TrainJob.
    pub(crate) fn job_set(&self) -> Option<&JobSetState> {
        match &self.job_set {
            StoredJobSet::Ours(job_set) => Some(job_set),
            _ => None,
        }
    }

    /// Whether a JobSet of its name exists, whoever owns it.
    pub(crate) fn has_any_job_set(&self) -> bool {
        !matches!(self.job_set, StoredJobSet::Missing)
    }

    /// Whether pods of its JobSet may run.
    pub(crate) fn may_run(&self) -> bool {
        let runs = |job_set: &JobSetState| !job_set.suspended && job_set.end.is_none();
        self.job_set().is_some_and(runs)
    }

    /// Returns the JobSet that the status is derived from: the existing one, or a deleted one that has ended.
    pub(crate) fn reported(&self) -> Option<&JobSetState> {
        let ended = self
            .deleted_job_set
            .as_deref()
            .filter(|last| last.end.is_some());
        self.job_set().or(ended)
    }

    /// Whether the JobSet was seen to be deleted before it ended.
    pub(crate) fn was_deleted(&self) -> bool {
        self.deleted_job_set
            .as_ref()
            .is_some_and(|last| last.end.is_none())
    }
}

/// A JobSet in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoredJobSet {
    /// No JobSet has the TrainJob's name.
    Missing,
    /// It cannot be decoded.
    Unreadable,
    /// It does not belong to the TrainJob.
    Foreign,
    /// It belongs to the TrainJob.
    Ours(Arc<JobSetState>),
}

/// A write of the annotation about the error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnnotationWrite {
    /// The TrainJob's UID.
    pub(crate) uid: Box<str>,
    /// The text; `None` if the annotation was removed.
    pub(crate) text: Option<Arc<str>>,
    /// When the reconcile that wrote it began.
    pub(crate) at: Timestamp,
    /// Whether the API server refused it or did not answer.
    pub(crate) failed: bool,
}

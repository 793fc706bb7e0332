//! What is known of a TrainJob when a reconcile of it begins.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use super::{
    last_reconcile::{AnnotationWrite, LastReconcile},
    reconciler::Reconciler,
    status,
};
use crate::{
    generation::{CommonInputs, Generation},
    queue::NamespacedName,
    watch::{DesiredState, JobSetState, TrainJobState, TrainJobStatus},
};

/// What is known when a reconcile begins.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) now: Timestamp,
    pub(crate) job: JobFacts,
    /// The JobSet, whose state selects the branch of the reconcile.
    pub(crate) job_set: KnownJobSet,
    /// The result of the last reconcile, if it was of the same TrainJob.
    pub(crate) last: Option<LastReconcile>,
    /// Whether this process began to create or update its JobSet, and did not end.
    pub(crate) unfinished: bool,
    /// The inputs that it shares with the other TrainJobs of its generation.
    pub(crate) common: CommonInputs,
    /// Whether something that the JobSet was rendered from has changed since.
    pub(crate) outdated: bool,
    /// Whether its reconciles have failed for so long that the cause is unlikely to be temporary (`TEMPORARY`).
    pub(crate) persists: bool,
    /// The last write of its annotation, if it was of the same TrainJob.
    pub(crate) annotated: Option<AnnotationWrite>,
}

impl Start {
    /// Returns what is known of this TrainJob in the store, which is reconciled with a generation.
    pub(super) fn of(
        reconciler: &Reconciler,
        key: &NamespacedName,
        job: &TrainJobState,
        generation: &Generation,
        persists: bool,
    ) -> Self {
        let uid = &*job.uid;
        let last = reconciler.last().get(key).cloned();
        let annotated = reconciler.annotated().get(key).cloned();
        Self {
            now: reconciler.now(),
            job: JobFacts::of(&key.name, job),
            job_set: KnownJobSet::of(reconciler, key, uid),
            unfinished: matches!(last, Some(None)),
            last: last.flatten().filter(|last| *last.uid == *uid),
            common: generation.common.clone(),
            outdated: reconciler.interests.is_outdated(key),
            persists,
            annotated: annotated.filter(|last| *last.uid == *uid),
        }
    }
}

/// The facts of a TrainJob.
#[derive(Clone, Debug)]
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

/// What is known of a TrainJob's JobSet.
#[derive(Clone, Debug)]
pub(crate) struct KnownJobSet {
    /// The JobSet of its name in the store.
    pub(crate) stored: StoredJobSet,
    /// The last state of its deleted JobSet, if it is known.
    pub(crate) deleted: Option<Arc<JobSetState>>,
}

impl KnownJobSet {
    /// Returns what the stores have of the JobSet of the TrainJob with that UID.
    pub(super) fn of(reconciler: &Reconciler, key: &NamespacedName, uid: &str) -> Self {
        // The order matters: a deleted JobSet is noted before it is missing from the store, and a JobSet that becomes unreadable during the
        // lookup must not be taken for a missing one.
        let job_sets = &reconciler.stores.job_sets;
        let is_unreadable = || job_sets.unreadable(key).is_some();
        let was_unreadable = is_unreadable();
        let stored = match job_sets.get(key) {
            _ if was_unreadable || is_unreadable() => StoredJobSet::NotOurs,
            None => StoredJobSet::Missing,
            Some(found) if found.owner.as_deref() == Some(uid) => StoredJobSet::Ours(found),
            Some(_) => StoredJobSet::NotOurs,
        };
        Self {
            stored,
            deleted: reconciler.deleted_job_sets.of(key, uid),
        }
    }

    /// Returns the JobSet if it belongs to the TrainJob.
    pub(crate) fn ours(&self) -> Option<&JobSetState> {
        match &self.stored {
            StoredJobSet::Ours(job_set) => Some(job_set),
            _ => None,
        }
    }

    /// Whether a JobSet of its name exists, whoever owns it.
    pub(crate) fn exists(&self) -> bool {
        !matches!(self.stored, StoredJobSet::Missing)
    }

    /// Whether a TrainJob with this status has not started, so that its next rendering is with the current plugins.
    pub(crate) fn has_not_started(&self, status: &TrainJobStatus) -> bool {
        match &self.stored {
            StoredJobSet::Missing => true,
            StoredJobSet::Ours(found) => found.suspended && has_never_run(found, status),
            StoredJobSet::NotOurs => false,
        }
    }

    /// Whether pods of its JobSet may run.
    pub(crate) fn may_run(&self) -> bool {
        let runs = |job_set: &JobSetState| !job_set.suspended && job_set.end.is_none();
        self.ours().is_some_and(runs)
    }

    /// Returns the JobSet that the status is derived from: the existing one, or a deleted one that has ended.
    pub(crate) fn reported(&self) -> Option<&JobSetState> {
        let ended = self.deleted.as_deref().filter(|last| last.end.is_some());
        self.ours().or(ended)
    }

    /// Whether the JobSet was seen to be deleted before it ended.
    pub(crate) fn was_deleted(&self) -> bool {
        let deleted = self.deleted.as_ref();
        deleted.is_some_and(|last| last.end.is_none())
    }
}

/// Whether the suspended JobSet of a TrainJob with this status has never run. Then it has the digest of its inputs.
pub(crate) fn has_never_run(job_set: &JobSetState, status: &TrainJobStatus) -> bool {
    job_set.inputs.is_some() && !status::has_run(status)
}

/// The JobSet of a TrainJob's name in the store.
#[derive(Clone, Debug)]
pub(crate) enum StoredJobSet {
    /// There is none.
    Missing,
    /// It does not belong to the TrainJob. One that cannot be decoded counts as such; [`Reconciler::reconcile`] then changes nothing.
    NotOurs,
    /// It belongs to the TrainJob.
    Ours(Arc<JobSetState>),
}

//! The end of a reconcile: the state in memory, the status, and the deletion of a JobSet that is overdue.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::{Flow, ReconcileOutcome, Result, because, known_snapshot::KnownSnapshot, maintain};
use crate::{
    reconcile::{
        cluster::{Cluster, KeptInterests},
        error::ReconcileError,
        object_version::ObjectVersion,
        outcome::waits,
        start::{JobFacts, KnownJobSet},
        status,
    },
    watch::TrainJobStatus,
};

impl<C: Cluster> Flow<'_, C> {
    /// Ends a reconcile, successful or not: writes the status and the annotation about its error.
    pub(super) async fn finish(&mut self, has_ended: bool, result: Result<()>) -> ReconcileOutcome {
        let error = result.err();
        if error.is_some() {
            // The reconcile is retried, and the problems found so far are reported by the attempt that succeeds.
            self.reports.clear();
        }
        self.settle(has_ended, error.as_ref());
        let of_status = self.write_outcome(error.is_some()).await.err();
        // The error is shown even if the status cannot be written.
        let reports = std::mem::take(&mut self.reports);
        let shown = error.as_ref().or(of_status.as_ref());
        let annotated = self.annotate(shown.or_else(|| waits(&reports))).await;
        self.reports.splice(..0, reports);
        let (job_set, job, now) = (self.cluster.job_set_now(), &self.start.job, self.start.now);
        let next_check = maintain::next_check(job_set.ours(), job, now).filter(|_| !has_ended);
        let requeue_after = deadline(job, &job_set, now).into_iter().chain(next_check);
        ReconcileOutcome {
            requeue_after: requeue_after.chain(annotated).min(),
            reports: std::mem::take(&mut self.reports),
            error: of_status.or(error),
        }
    }

    /// Updates the state in memory.
    fn settle(&mut self, has_ended: bool, error: Option<&ReconcileError>) {
        // Its memory is released, and the API server may take long from here on.
        self.snapshot = KnownSnapshot::Nothing;
        let job_set = self.cluster.job_set_now();
        let runs = job_set.ours().is_some_and(|found| !found.suspended);
        // A missing object of a running JobSet is recreated as soon as its kind is served.
        let waits = error.is_some_and(ReconcileError::is_not_served);
        let is_followed = !(has_ended || self.start.job.deleting || runs && !waits);
        self.cluster.settle(if is_followed {
            KeptInterests::OfThisReconcile
        } else {
            KeptInterests::None
        });
        if has_ended {
            self.cluster.forget_last();
        }
    }

    /// Updates the status, and deletes a JobSet that is overdue.
    async fn write_outcome(&mut self, failed: bool) -> Result<()> {
        let job = &self.start.job;
        let job_set = self.cluster.job_set_now();
        let status = next_status(job, &job_set, failed, self.start.now);
        if status != job.status {
            because("the status is outdated");
            self.cluster.write_status(&status).await?;
        }
        let Some(end) = status::end(&status) else {
            return Ok(());
        };
        if job_set.deleted.is_some() {
            self.cluster.forget_deleted_job_set();
        }
        if end.reason == status::DEADLINE_EXCEEDED {
            self.delete_overdue().await?;
        }
        Ok(())
    }

    /// Deletes the JobSet of a TrainJob that exceeded its deadline.
    async fn delete_overdue(&mut self) -> Result<()> {
        let job_set = self.cluster.job_set_now();
        let Some(found) = job_set.ours().filter(|found| !found.deleting) else {
            return Ok(());
        };
        because("the TrainJob exceeded its active deadline");
        let at = ObjectVersion {
            uid: Some(found.uid.clone()),
            version: None,
        };
        self.cluster.delete_job_set(&at).await
    }
}

/// Returns the status as of the current state.
fn next_status(
    job: &JobFacts,
    job_set: &KnownJobSet,
    failed: bool,
    now: Timestamp,
) -> TrainJobStatus {
    let suspend = if failed && job.had_job_set() && job_set.ours().is_none() {
        // The condition shows whether the deleted JobSet was suspended, and so whether it may have ended. The next reconcile needs it.
        job.is_suspended()
    } else {
        // A JobSet that could not be suspended, or is being deleted, still has pods.
        job.desired.suspend && !job_set.may_run()
    };
    status(job, job_set, suspend, now)
}

/// Returns the status of a TrainJob that is suspended or not.
pub(super) fn status(
    job: &JobFacts,
    job_set: &KnownJobSet,
    suspend: bool,
    now: Timestamp,
) -> TrainJobStatus {
    let desired = &job.desired;
    let status = status::next(&job.status, suspend, job_set.reported(), now);
    if status::end(&status).is_some() {
        return status;
    }
    if let Some(message) = &desired.not_supported {
        return status::not_supported(&status, message, now);
    }
    match status::deadline(desired.deadline, suspend, job.created, &status) {
        Some(deadline) if deadline <= now => status::deadline_exceeded(&status, now),
        _ => status,
    }
}

/// Returns the time until the TrainJob's deadline, if it is in the future.
fn deadline(job: &JobFacts, job_set: &KnownJobSet, now: Timestamp) -> Option<Duration> {
    let desired = &job.desired;
    if desired.not_supported.is_some() {
        return None;
    }
    let status = status(job, job_set, desired.suspend, now);
    let until = status::deadline(desired.deadline, desired.suspend, job.created, &status)
        .filter(|_| status::end(&status).is_none())?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

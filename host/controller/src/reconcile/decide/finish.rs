//! The end of a reconcile: the state in memory, the status, the deletion of a JobSet that is overdue, and the annotation about an error.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;

use super::{Because as _, Decided, Decision, End, Pending, Report, Reports, running};
use crate::{
    reconcile::{
        error::AnnotationTiming,
        failure::{Class, ReconcileFailure},
        object_version::ObjectVersion,
        observed::{AnnotationWrite, CachedJobSet, JobFacts, Observed},
        status,
        step::{Action, InterestChange, MemoryUpdate, Reason, Step},
    },
    watch::TrainJobStatus,
};

/// The shortest time between two texts of the annotation, and between two removals.
const BETWEEN_TEXTS: Duration = Duration::from_secs(60);

/// How long the annotation is left as it is after a write of the same text was refused or not answered.
const AFTER_FAILURE: Duration = Duration::from_secs(600);

/// Ends a reconcile that changes neither the TrainJob's objects nor its status.
pub(super) fn skip(
    o: &Observed,
    update: MemoryUpdate,
    failure: Option<&ReconcileFailure>,
) -> Decision {
    if !o.effects.memory_updated {
        return Decision::Next(Step::Act(Action::UpdateMemory(update)), Reason::Ends);
    }
    Decision::Done(End {
        failure: failure.cloned(),
        ..End::default()
    })
}

/// Ends a reconcile, successful or not: writes the status and the annotation about its error.
pub(super) fn finish(
    o: &Observed,
    job: &JobFacts,
    has_ended: bool,
    outcome: Result<Reports, ReconcileFailure>,
    now: Timestamp,
) -> Decision {
    let next_check = running::next_check(o, job, now).filter(|_| !has_ended);
    let requeue_after = deadline(job, &o.current, now).into_iter().chain(next_check);
    let failure = outcome.as_ref().err();
    let of_status = match write_outcome(o, job, has_ended, failure, now) {
        Err(Pending::Step(step, reason)) => {
            return Decision::Next(step, reason.unwrap_or(Reason::Ends));
        }
        Err(Pending::Failed(failure)) => Some(failure),
        Ok(()) => None,
    };
    // The error is shown even if the status cannot be written.
    let annotation = match annotate(o, job, failure.or(of_status.as_ref()), now) {
        Ok(annotation) => annotation,
        Err((step, reason)) => return Decision::Next(step, reason),
    };
    let (mut reports, failure) = match outcome {
        Ok(reports) => (reports, None),
        Err(failure) => (Reports::new(), Some(failure)),
    };
    reports.extend(annotation.reports);
    Decision::Done(End {
        requeue_after: requeue_after.chain(annotation.requeue_after).min(),
        reports,
        failure: of_status.or(failure),
    })
}

/// Ends a reconcile that changes nothing but the annotation about its failure.
pub(super) fn refuse(
    o: &Observed,
    job: &JobFacts,
    failure: &ReconcileFailure,
    now: Timestamp,
) -> Decision {
    match annotate(o, job, Some(failure), now) {
        Ok(annotation) => Decision::Done(End {
            reports: annotation.reports,
            failure: Some(failure.clone()),
            ..End::default()
        }),
        Err((step, reason)) => Decision::Next(step, reason),
    }
}

/// The result of updating the annotation.
#[derive(Default)]
struct Annotation {
    reports: Reports,
    /// After how long it is removed, if it was not yet. A TrainJob that fails is retried anyway.
    requeue_after: Option<Duration>,
}

/// Writes or removes the annotation about the error, or returns the step that does. It fails no reconcile.
fn annotate(
    o: &Observed,
    job: &JobFacts,
    failure: Option<&ReconcileFailure>,
    now: Timestamp,
) -> Result<Annotation, (Step, Reason)> {
    let summary = failure.map(|failure| failure.summary(&job.name));
    let is_shown = match summary.as_ref().map(|summary| summary.annotated) {
        None | Some(AnnotationTiming::AtOnce) => true,
        Some(AnnotationTiming::OncePersistent) => o.persists,
        Some(AnnotationTiming::Never) => false,
    };
    let error = summary.map(|summary| summary.text);
    let is_known = error.as_deref() == job.error.as_deref();
    if job.deleting || o.effects.error_written || !is_shown || is_known {
        return Ok(Annotation::default());
    }
    let is_removed = error.is_none();
    let last = o.annotated.as_ref();
    if let Some(wait) = last.and_then(|last| pause(last, error.as_deref(), now)) {
        return Ok(Annotation {
            requeue_after: is_removed.then_some(wait),
            ..Annotation::default()
        });
    }
    match o.failure_of(Action::WriteError(error)) {
        Err(Pending::Step(step, _)) => Err((step, Reason::ErrorOutdated)),
        // The failure of the reconcile is reported, not that of the annotation.
        Ok(refused) | Err(Pending::Failed(refused)) => Ok(Annotation {
            reports: vec![Report::NotAnnotated(refused)],
            requeue_after: is_removed.then_some(AFTER_FAILURE),
        }),
    }
}

/// Returns how long the annotation is left as it is after a write of it; `None` if this text may be written now.
///
/// Without the pause, two writers with different texts, or an error whose text differs at each retry, would cause a write for each retry.
fn pause(last: &AnnotationWrite, error: Option<&str>, now: Timestamp) -> Option<Duration> {
    let pause = if last.failed && last.text.as_deref() == error {
        AFTER_FAILURE
    } else if last.text.is_some() == error.is_some() {
        BETWEEN_TEXTS
    } else {
        // It is written as soon as the TrainJob fails, and removed as soon as it is reconciled.
        return None;
    };
    // A clock that was set back ends the pause.
    let since = Duration::try_from(now.duration_since(last.at)).ok()?;
    pause.checked_sub(since).filter(|rest| !rest.is_zero())
}

/// Updates the state in memory and the status, and deletes a JobSet that is overdue.
fn write_outcome(
    o: &Observed,
    job: &JobFacts,
    has_ended: bool,
    failure: Option<&ReconcileFailure>,
    now: Timestamp,
) -> Decided<()> {
    if !o.effects.memory_updated {
        let update = memory_update(o, job, has_ended, failure);
        return o.act(Action::UpdateMemory(update)).because(Reason::Ends);
    }
    let status = next_status(o, job, failure.is_some(), now);
    write_status(o, job, &status)?;
    let Some(end) = status::end(&status) else {
        return Ok(());
    };
    if o.current.deleted_job_set.is_some() {
        return o.act(Action::ForgetDeletedJobSet).because(Reason::Ends);
    }
    if end.reason == status::DEADLINE_EXCEEDED {
        delete_overdue(o)?;
    }
    Ok(())
}

/// Returns the status as of the current state.
fn next_status(o: &Observed, job: &JobFacts, failed: bool, now: Timestamp) -> TrainJobStatus {
    let suspend = if failed && job.had_job_set() && o.current.job_set().is_none() {
        // The condition shows whether the deleted JobSet was suspended, and so whether it may have ended. The next reconcile needs it.
        job.is_suspended()
    } else {
        // A JobSet that could not be suspended, or is being deleted, still has pods.
        job.desired.suspend && !o.current.may_run()
    };
    status(job, &o.current, suspend, now)
}

/// Writes the status if it has changed.
fn write_status(o: &Observed, job: &JobFacts, status: &TrainJobStatus) -> Decided<()> {
    if *status == job.status || o.effects.status_written {
        return Ok(());
    }
    let write = Action::WriteStatus(Arc::new(status.clone()));
    o.act(write).because(Reason::StatusOutdated)
}

/// Deletes the JobSet of a TrainJob that exceeded its deadline.
fn delete_overdue(o: &Observed) -> Decided<()> {
    match o.current.job_set() {
        Some(found) if !found.deleting && !o.effects.job_set_deleted => {
            let delete = Action::DeleteJobSet(ObjectVersion {
                uid: Some(found.uid.clone()),
                version: None,
            });
            o.act(delete).because(Reason::Overdue)
        }
        _ => Ok(()),
    }
}

fn memory_update(
    o: &Observed,
    job: &JobFacts,
    has_ended: bool,
    failure: Option<&ReconcileFailure>,
) -> MemoryUpdate {
    let runs = o.current.job_set().is_some_and(|found| !found.suspended);
    // A missing object of a running JobSet is recreated as soon as its kind is served.
    let waits = failure.is_some_and(|failure| failure.is(Class::NotServed));
    MemoryUpdate {
        interests: if has_ended || job.deleting || runs && !waits {
            InterestChange::Forget
        } else {
            InterestChange::Settle
        },
        forget_last: has_ended,
        forget_deleted_job_set: false,
    }
}

/// Returns the status of a TrainJob that is suspended or not.
pub(super) fn status(
    job: &JobFacts,
    cached: &CachedJobSet,
    suspend: bool,
    now: Timestamp,
) -> TrainJobStatus {
    let desired = &job.desired;
    let status = status::next(&job.status, suspend, cached.reported(), now);
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
fn deadline(job: &JobFacts, cached: &CachedJobSet, now: Timestamp) -> Option<Duration> {
    let desired = &job.desired;
    if desired.not_supported.is_some() {
        return None;
    }
    let status = status(job, cached, desired.suspend, now);
    let until = status::deadline(desired.deadline, desired.suspend, job.created, &status)
        .filter(|_| status::end(&status).is_none())?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

//! The end of a reconcile: what is kept in memory, the status, the end of a JobSet that is overdue, and the annotation about an error.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;

use super::{Because as _, Decided, Decision, End, Pending, Report, Reports};
use crate::{
    reconcile::{
        error_summary::ErrorSummary,
        failure::ReconcileFailure,
        observed::{Cached, JobFacts, Observed, Version},
        status,
        step::{Action, Interests, Reason, Settle, Step},
    },
    watch::TrainJobStatus,
};

/// Ends a reconcile that changes neither the TrainJob's objects nor its status.
pub(super) fn leave(o: &Observed, settle: Settle, failure: Option<&ReconcileFailure>) -> Decision {
    if !o.done.settled {
        return Decision::Next(Step::Act(Action::Settle(settle)), Reason::Ends);
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
    let again = deadline(job, &o.current, now);
    let failure = outcome.as_ref().err();
    let written = write_status(o, job, has_ended, failure.is_some(), now);
    let written = match written.and_then(|()| annotate(o, job, failure)) {
        Err(Pending::Step(step, reason)) => {
            return Decision::Next(step, reason.unwrap_or(Reason::Ends));
        }
        Err(Pending::Failed(failure)) => Err(failure),
        Ok(reports) => Ok(reports),
    };
    let (mut reports, failure) = match outcome {
        Ok(reports) => (reports, None),
        Err(failure) => (Reports::new(), Some(failure)),
    };
    let failure = match written {
        Ok(more) => {
            reports.extend(more);
            failure
        }
        Err(of_status) => Some(of_status),
    };
    Decision::Done(End {
        again,
        reports,
        failure,
    })
}

/// Ends a reconcile that changes nothing but the annotation about its failure.
pub(super) fn refuse(o: &Observed, job: &JobFacts, failure: &ReconcileFailure) -> Decision {
    let reports = match annotate(o, job, Some(failure)) {
        Err(Pending::Step(step, reason)) => {
            return Decision::Next(step, reason.unwrap_or(Reason::Ends));
        }
        Err(Pending::Failed(_)) => Reports::new(),
        Ok(reports) => reports,
    };
    Decision::Done(End {
        reports,
        failure: Some(failure.clone()),
        ..End::default()
    })
}

/// Writes or removes the annotation about the error. A temporary failure leaves it unchanged.
fn annotate(o: &Observed, job: &JobFacts, failure: Option<&ReconcileFailure>) -> Decided<Reports> {
    let summary = failure.map(|failure| failure.summary(&job.name));
    let is_temporary = |summary: &ErrorSummary| summary.passing && !o.persists;
    if job.deleting || o.done.error_written || summary.as_ref().is_some_and(is_temporary) {
        return Ok(Reports::new());
    }
    let error = summary.map(|summary| summary.text);
    if error.as_deref() == job.error.as_deref() {
        return Ok(Reports::new());
    }
    let refused = o.attempted(Action::WriteError(error));
    let refused = refused.because(Reason::ErrorOutdated)?;
    match failure {
        // The original failure is reported, not that of the annotation.
        Some(_) => Ok(vec![Report::NotAnnotated(refused)]),
        None => Err(Pending::Failed(refused)),
    }
}

fn write_status(
    o: &Observed,
    job: &JobFacts,
    has_ended: bool,
    failed: bool,
    now: Timestamp,
) -> Decided<()> {
    if !o.done.settled {
        let settle = settle(o, job, has_ended);
        return o.act(Action::Settle(settle)).because(Reason::Ends);
    }
    let suspend = if failed && job.had_job_set() && o.current.job_set().is_none() {
        // The condition shows whether the deleted JobSet was suspended, and so whether it may have ended. The next reconcile needs it.
        job.is_suspended()
    } else {
        // A JobSet that could not be suspended, or is being deleted, still has pods.
        job.wishes.suspend && !o.current.may_run()
    };
    let status = status(job, &o.current, suspend, now);
    let end = status::end(&status);
    let is_overdue = end.is_some_and(|end| end.reason == status::DEADLINE_EXCEEDED);
    let is_end = end.is_some();
    if status != job.status && !o.done.status_written {
        let write = Action::WriteStatus(Arc::new(status));
        return o.act(write).because(Reason::StatusOutdated);
    }
    if is_end && o.current.departed.is_some() {
        return o.act(Action::ForgetDeparted).because(Reason::Ends);
    }
    match o.current.job_set() {
        Some(found) if is_overdue && !found.deleting && !o.done.job_set_deleted => {
            let delete = Action::DeleteJobSet(Version {
                uid: Some(found.uid.clone()),
                version: None,
            });
            o.act(delete).because(Reason::Overdue)
        }
        _ => Ok(()),
    }
}

fn settle(o: &Observed, job: &JobFacts, has_ended: bool) -> Settle {
    let runs = o.current.job_set().is_some_and(|found| !found.suspended);
    Settle {
        interests: if has_ended || job.deleting || runs {
            Interests::Forget
        } else {
            Interests::Settle
        },
        forget_last: has_ended,
        forget_departed: false,
    }
}

/// Returns the status of a TrainJob that is suspended or not.
pub(super) fn status(
    job: &JobFacts,
    cached: &Cached,
    suspend: bool,
    now: Timestamp,
) -> TrainJobStatus {
    let wishes = &job.wishes;
    let status = status::next(&job.status, suspend, cached.reported(), now);
    if status::end(&status).is_some() {
        return status;
    }
    if let Some(message) = &wishes.not_supported {
        return status::not_supported(&status, message, now);
    }
    match status::deadline(wishes.deadline, suspend, job.created, &status) {
        Some(deadline) if deadline <= now => status::deadline_exceeded(&status, now),
        _ => status,
    }
}

/// Returns the time until the TrainJob's deadline, if it is in the future.
fn deadline(job: &JobFacts, cached: &Cached, now: Timestamp) -> Option<Duration> {
    let wishes = &job.wishes;
    if wishes.not_supported.is_some() {
        return None;
    }
    let status = status(job, cached, wishes.suspend, now);
    let until = status::deadline(wishes.deadline, wishes.suspend, job.created, &status)
        .filter(|_| status::end(&status).is_none())?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

//! The end of a reconcile: what is kept in memory, the status, and the end of a JobSet that is overdue.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::{Because as _, Decided, Decision, End, Pending, Reports};
use crate::reconcile::failure::Failure;
use crate::reconcile::observed::{Cached, JobFacts, Observed, Version};
use crate::reconcile::status;
use crate::reconcile::step::{Action, Interests, Reason, Settle, Step};
use crate::watch::TrainJobStatus;

/// Ends a reconcile that neither changes the TrainJob's objects nor its status.
pub(super) fn leave(o: &Observed, settle: Settle, failure: Option<&Failure>) -> Decision {
    if !o.done.settled {
        return Decision::Next(Step::Act(Action::Settle(settle)), Reason::Ends);
    }
    Decision::Done(End {
        failure: failure.cloned(),
        ..End::default()
    })
}

/// Ends a reconcile: whatever came of it, the status is written.
pub(super) fn finish(
    o: &Observed,
    job: &JobFacts,
    has_ended: bool,
    outcome: Result<Reports, Failure>,
    now: Timestamp,
) -> Decision {
    let again = deadline(job, &o.current, now);
    let told = match tell(o, job, has_ended, outcome.is_err(), now) {
        Err(Pending::Step(step, reason)) => {
            return Decision::Next(step, reason.unwrap_or(Reason::Ends));
        }
        Err(Pending::Failed(failure)) => Some(failure),
        Ok(()) => None,
    };
    let (reports, failure) = match outcome {
        Ok(reports) => (reports, told),
        Err(failure) => (Reports::new(), told.or(Some(failure))),
    };
    Decision::Done(End {
        again,
        reports,
        failure,
    })
}

fn tell(
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
        // Whether its JobSet was suspended when it went tells whether it may have ended: the next reconcile has to know that, too.
        job.is_suspended()
    } else {
        // One that could not be suspended, or is about to go, keeps its pods.
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

/// The status of a TrainJob that counts as suspended or not.
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

/// The time until the TrainJob's deadline, if it has one before it.
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

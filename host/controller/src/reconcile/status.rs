//! The status of a TrainJob: conditions and counts, from its spec and its JobSet.
//!
//! No condition types beyond Suspended, Complete and Failed: the SDK reads "running" off a status without them.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use trainyard_model::text::clean;

use crate::watch::{JobCounts, JobSetState, TrainJobStatus};

/// The condition that shows whether the TrainJob is suspended.
pub(crate) const SUSPENDED: &str = "Suspended";
/// The condition of a TrainJob that reached its end.
pub(crate) const COMPLETE: &str = "Complete";
/// The condition of a TrainJob that failed.
pub(crate) const FAILED: &str = "Failed";
/// The reason of a TrainJob that took longer than `spec.activeDeadlineSeconds`.
pub(crate) const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// The reason of a TrainJob whose JobSet ran and was deleted without its end being observed.
const JOB_SET_GONE: &str = "JobSetGone";
/// The reason of a TrainJob whose `spec.runtimeRef` has an unsupported kind. It is the only failure that is not final.
pub(crate) const NOT_SUPPORTED: &str = "TrainingRuntimeNotSupported";

/// Returns the reason of a failed TrainJob if it is one of the controller's, and one word for all reasons of JobSet.
pub(crate) fn known_reason(reason: &str) -> &'static str {
    let known = [DEADLINE_EXCEEDED, JOB_SET_GONE, NOT_SUPPORTED];
    let mut known = known.into_iter();
    known
        .find(|known| *known == reason)
        .unwrap_or("JobSetFailed")
}

/// Returns the condition with which the TrainJob has ended for good; `None` while it may continue.
pub(crate) fn end(status: &TrainJobStatus) -> Option<&Condition> {
    let failed = || {
        status
            .is_true(FAILED)
            .filter(|failed| failed.reason != NOT_SUPPORTED)
    };
    status.is_true(COMPLETE).or_else(failed)
}

/// Whether pods of its JobSet have run.
///
/// Only the counts show this: `Suspended` is `False` as soon as the TrainJob is unsuspended, even if no JobSet was created.
pub(crate) fn has_run(status: &TrainJobStatus) -> bool {
    let ran = |job: &JobCounts| job.active.max(job.ready).max(job.succeeded).max(job.failed) > 0;
    status.jobs_status.iter().any(ran)
}

/// Returns the status as it should be.
pub(crate) fn next(
    current: &TrainJobStatus,
    suspend: bool,
    job_set: Option<&JobSetState>,
    now: Timestamp,
) -> TrainJobStatus {
    let mut next = current.clone();
    if suspend {
        let condition = condition(SUSPENDED, "True", "Suspended", "TrainJob is suspended", now);
        set(&mut next, condition);
    } else if current.is_true(SUSPENDED).is_some() {
        let condition = condition(SUSPENDED, "False", "Resumed", "TrainJob is resumed", now);
        set(&mut next, condition);
    }
    // A deleted JobSet does not reset the status.
    let Some(job_set) = job_set else {
        return next;
    };
    if let (None, Some(ended)) = (end(current), &job_set.end) {
        let kind = if ended.type_ == "Completed" {
            COMPLETE
        } else {
            FAILED
        };
        let condition = Condition {
            type_: kind.to_owned(),
            observed_generation: None,
            message: clean(&ended.message),
            ..(**ended).clone()
        };
        set(&mut next, condition);
    }
    // The counts have the order of the JobSet's, which is that of a map and means nothing: on its own, it is not written.
    if current.jobs_status.len() != job_set.jobs.len()
        || !job_set
            .jobs
            .iter()
            .all(|job| current.jobs_status.contains(job))
    {
        next.jobs_status = job_set.jobs.to_vec();
    }
    next
}

/// Returns the assumed end of a JobSet that was not observed: a success if all replicated jobs had succeeded at the last count.
pub(crate) fn unseen_end(last: &TrainJobStatus, now: Timestamp) -> Condition {
    let has_succeeded = |job: &JobCounts| {
        job.succeeded > 0 && job.active.max(job.ready).max(job.failed).max(job.suspended) == 0
    };
    let jobs = &last.jobs_status;
    if !jobs.is_empty() && jobs.iter().all(has_succeeded) {
        let message = "all replicated jobs had succeeded before the JobSet was deleted";
        return condition("Completed", "True", JOB_SET_GONE, message, now);
    }
    let message = "the JobSet ran and was deleted before the controller observed its end; recreate the TrainJob to run it again";
    condition("Failed", "True", JOB_SET_GONE, message, now)
}

/// Returns the status of a TrainJob that exceeded its deadline.
pub(crate) fn deadline_exceeded(current: &TrainJobStatus, now: Timestamp) -> TrainJobStatus {
    let message = "TrainJob exceeded its active deadline";
    failed(current, DEADLINE_EXCEEDED, message, now)
}

/// Returns the status of a TrainJob with an unsupported kind of runtime.
pub(crate) fn not_supported(
    current: &TrainJobStatus,
    message: &str,
    now: Timestamp,
) -> TrainJobStatus {
    failed(current, NOT_SUPPORTED, &clean(message), now)
}

fn failed(current: &TrainJobStatus, reason: &str, message: &str, now: Timestamp) -> TrainJobStatus {
    let mut next = current.clone();
    set(&mut next, condition(FAILED, "True", reason, message, now));
    next
}

/// Returns when the TrainJob exceeds its deadline, counted from its creation or last resumption; `None` while it is suspended.
pub(crate) fn deadline(
    seconds: Option<i64>,
    suspend: bool,
    created: Timestamp,
    status: &TrainJobStatus,
) -> Option<Timestamp> {
    let seconds = seconds.filter(|_| !suspend)?;
    let seconds = k8s_openapi::jiff::SignedDuration::from_secs(seconds);
    started(created, status)?.checked_add(seconds).ok()
}

/// Returns when the TrainJob was created or last resumed; `None` while its status shows that it is suspended.
pub(crate) fn started(created: Timestamp, status: &TrainJobStatus) -> Option<Timestamp> {
    let mut conditions = status.conditions.iter();
    match conditions.find(|condition| condition.type_ == SUSPENDED) {
        // It was resumed a moment ago; the time counts from when the status shows it.
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(condition.last_transition_time.0),
        None => Some(created),
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

/// Sets a condition like Kubernetes' own controllers: in place, and with a new transition time only if its status changes. A new condition
/// is inserted before the first one with status `True`, because `kubectl get` shows only the first of these, and a JobSet can end while its
/// TrainJob is being suspended.
fn set(status: &mut TrainJobStatus, mut condition: Condition) {
    let mut conditions = status.conditions.iter_mut();
    match conditions.find(|known| known.type_ == condition.type_) {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
        None => {
            let mut conditions = status.conditions.iter();
            let holding = conditions.position(|known| known.status == "True");
            let at = holding.unwrap_or(status.conditions.len());
            status.conditions.insert(at, condition);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn job_set(end: Option<(&str, i64)>, active: i64) -> JobSetState {
        let counts = |name: &str| JobCounts {
            name: name.to_owned(),
            active,
            ..JobCounts::default()
        };
        let end = end.map(|(kind, second)| {
            Box::new(condition(kind, "True", "Because", "of this", at(second)))
        });
        JobSetState::for_tests(end, [counts("a"), counts("b")].into())
    }

    fn kinds(status: &TrainJobStatus) -> Vec<(&str, &str)> {
        let conditions = status.conditions.iter();
        conditions
            .map(|c| (c.type_.as_str(), c.status.as_str()))
            .collect()
    }

    #[test]
    fn a_running_job_has_counts_and_no_condition() {
        let status = next(
            &TrainJobStatus::default(),
            false,
            Some(&job_set(None, 1)),
            at(10),
        );
        assert!(status.conditions.is_empty());
        assert_eq!(status.jobs_status.len(), 2);
    }

    #[test]
    fn the_end_is_the_job_sets_with_its_reason_and_time() {
        for (kind, ours) in [("Completed", COMPLETE), ("Failed", FAILED)] {
            let ended = job_set(Some((kind, 7)), 0);
            let status = next(&TrainJobStatus::default(), false, Some(&ended), at(10));
            assert_eq!(kinds(&status), [(ours, "True")]);
            assert_eq!(status.conditions[0].reason, "Because");
            assert_eq!(status.conditions[0].last_transition_time.0, at(7));
        }
    }

    #[test]
    fn nothing_hidden_gets_into_a_condition() {
        let mut ended = job_set(Some(("Failed", 7)), 0);
        if let Some(end) = &mut ended.end {
            end.message = "job \u{202e}on\u{200b}\u{1b}[31m\nfailed".to_owned();
        }
        let status = next(&TrainJobStatus::default(), false, Some(&ended), at(10));
        let wanted = r"job \u{202e}on\u{200b}\u{1b}[31m failed";
        assert_eq!(status.conditions[0].message, wanted);
        let status = not_supported(&TrainJobStatus::default(), "of kind a\u{2066}", at(1));
        assert_eq!(status.conditions[0].message, r"of kind a\u{2066}");
    }

    #[test]
    fn what_was_counted_once_has_run() {
        let with = |counts: JobCounts| {
            let waits = JobCounts {
                suspended: 1,
                ..JobCounts::default()
            };
            TrainJobStatus {
                jobs_status: vec![waits, counts],
                ..TrainJobStatus::default()
            }
        };
        let none = JobCounts::default();
        let counted: [fn(&mut JobCounts) -> &mut i64; 4] = [
            |counts| &mut counts.active,
            |counts| &mut counts.ready,
            |counts| &mut counts.succeeded,
            |counts| &mut counts.failed,
        ];
        for count in counted {
            let mut counts = none.clone();
            *count(&mut counts) = 1;
            assert!(has_run(&with(counts.clone())), "{counts:?}");
        }
        assert!(!has_run(&with(none)));
        assert!(!has_run(&TrainJobStatus::default()));
        // Unsuspended, but no JobSet was created, because its runtime is missing.
        let suspended = next(&TrainJobStatus::default(), true, None, at(1));
        let let_go = next(&suspended, false, None, at(2));
        assert!(!has_run(&let_go));
    }

    #[test]
    fn unseen_ends_are_successes_only_if_all_had_succeeded() {
        let counts = |succeeded, active| JobCounts {
            succeeded,
            active,
            ..JobCounts::default()
        };
        for (jobs, kind) in [
            (vec![counts(1, 0), counts(2, 0)], "Completed"),
            (vec![counts(1, 0), counts(0, 0)], "Failed"),
            (vec![counts(1, 1)], "Failed"),
            (vec![], "Failed"),
        ] {
            let last = TrainJobStatus {
                jobs_status: jobs,
                ..TrainJobStatus::default()
            };
            let end = unseen_end(&last, at(7));
            assert_eq!(
                (&*end.type_, &*end.reason),
                (kind, JOB_SET_GONE),
                "{last:?}"
            );
            assert_eq!(end.last_transition_time.0, at(7));
        }
    }

    #[test]
    fn an_end_is_final() {
        let failed = next(
            &TrainJobStatus::default(),
            false,
            Some(&job_set(Some(("Failed", 7)), 0)),
            at(10),
        );
        // The JobSet is gone, or another one of its name runs and completes.
        assert_eq!(next(&failed, false, None, at(20)), failed);
        let again = next(
            &failed,
            false,
            Some(&job_set(Some(("Completed", 30)), 0)),
            at(30),
        );
        assert_eq!(kinds(&again), [(FAILED, "True")]);
        assert!(end(&failed).is_some());
        let unsupported = not_supported(&TrainJobStatus::default(), "of another kind", at(1));
        assert!(end(&unsupported).is_none());
    }

    #[test]
    fn resumed_is_said_only_after_suspended() {
        let fresh = next(&TrainJobStatus::default(), false, None, at(1));
        assert!(fresh.conditions.is_empty());
        let suspended = next(&fresh, true, None, at(2));
        assert_eq!(kinds(&suspended), [(SUSPENDED, "True")]);
        assert_eq!(next(&suspended, true, None, at(3)), suspended);
        let resumed = next(&suspended, false, None, at(4));
        assert_eq!(kinds(&resumed), [(SUSPENDED, "False")]);
        assert_eq!(resumed.conditions[0].reason, "Resumed");
        assert_eq!(resumed.conditions[0].last_transition_time.0, at(4));
        assert_eq!(next(&resumed, false, None, at(5)), resumed);
    }

    #[test]
    fn the_end_is_the_first_condition_that_holds() {
        let suspended = next(&TrainJobStatus::default(), true, None, at(1));
        let failed = deadline_exceeded(&suspended, at(2));
        assert_eq!(kinds(&failed), [(FAILED, "True"), (SUSPENDED, "True")]);
        let resumed = next(&suspended, false, None, at(2));
        let failed = deadline_exceeded(&resumed, at(3));
        assert_eq!(kinds(&failed), [(SUSPENDED, "False"), (FAILED, "True")]);
    }

    #[test]
    fn counts_in_another_order_are_the_same_counts() {
        let mut status = next(
            &TrainJobStatus::default(),
            false,
            Some(&job_set(None, 1)),
            at(1),
        );
        status.jobs_status.reverse();
        assert_eq!(next(&status, false, Some(&job_set(None, 1)), at(2)), status);
        // New counts bring their order with them.
        let mut changed = job_set(None, 2);
        changed.jobs.reverse();
        let status = next(&status, false, Some(&changed), at(3));
        assert_eq!(status.jobs_status, *changed.jobs);
    }

    #[test]
    fn the_deadline_counts_from_the_last_resume() {
        let none = TrainJobStatus::default();
        assert_eq!(deadline(Some(60), false, at(100), &none), Some(at(160)));
        assert_eq!(deadline(Some(60), true, at(100), &none), None);
        assert_eq!(deadline(None, false, at(100), &none), None);
        let suspended = next(&none, true, None, at(120));
        assert_eq!(deadline(Some(60), false, at(100), &suspended), None);
        let resumed = next(&suspended, false, None, at(200));
        assert_eq!(deadline(Some(60), false, at(100), &resumed), Some(at(260)));
        assert_eq!(deadline(Some(i64::MAX), false, at(100), &none), None);
    }
}

//! The status and the deadline, at the end of a reconcile.

use super::*;

#[test]
fn the_end_of_a_reconcile() {
    let suspended = || {
        with(observed(to_suspend(job()), Some(job_set(true))), |o| {
            o.last = Some(at(&job_set(true), 1, None));
            o.effects.memory_updated = true;
        })
    };
    let Decision::Next(Step::Act(Action::WriteStatus(status)), reason) =
        decide(&suspended(), now())
    else {
        panic!("the status is not written");
    };
    assert_eq!(reason, Reason::StatusOutdated);
    assert!(status.is_true("Suspended").is_some());

    // If the status cannot be written either, the annotation shows the earlier failure, and the reconcile ends with that of the status.
    let status_failed = failed(Step::Act(Action::WriteStatus(status)), Class::Other);
    let mut both_failed = with(begun(to_suspend(job()), Some(job_set(true))), |o| {
        o.effects.memory_updated = true;
        o.observations.train_job = None;
        failed(Step::Observe(Observe::TrainJob), Class::Input)(o);
        status_failed(o);
    });
    let shown = failure(Class::Input).summary("job").text;
    assert_ne!(shown, failure(Class::Other).summary("job").text);
    let Decision::Next(Step::Act(Action::WriteError(error)), _) = decide(&both_failed, now())
    else {
        panic!("it is not annotated");
    };
    assert_eq!(error, Some(shown));
    both_failed.effects.error_written = true;
    let Decision::Done(end) = decide(&both_failed, now()) else {
        panic!("it does not end");
    };
    assert_eq!(end.failure, Some(failure(Class::Other)));

    let mut late = job();
    late.desired.deadline = Some(10);
    let overdue = |second: i64| {
        let o = with(observed(late.clone(), Some(job_set(false))), |o| {
            (o.effects.memory_updated, o.effects.status_written) = (true, true);
            o.last = Some(at(&job_set(false), 1, None));
        });
        decide(&o, Timestamp::from_second(second).unwrap())
    };
    let Decision::Done(end) = overdue(4) else {
        panic!("it does not end");
    };
    assert_eq!(end.requeue_after.map(|again| again.as_secs()), Some(6));
    let delete = Action::DeleteJobSet(ObjectVersion {
        uid: Some(job_set(false).uid),
        version: None,
    });
    let deleted = Decision::Next(Step::Act(delete), Reason::Overdue);
    assert_eq!(overdue(10), deleted);
}

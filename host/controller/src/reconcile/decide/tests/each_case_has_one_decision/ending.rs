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

/// Pods may wait for an object that was deleted, or may not be created, and then nothing changes.
#[test]
fn a_job_set_whose_pods_wait_is_reconciled_again() {
    let object = object("kept", ApplyMode::WithJobSet);
    let requeue_after = |objects: Option<&[ObjectRef]>, ready: i64, second: i64| {
        let mut found = job_set(false);
        found.jobs = counts(1);
        found.jobs[0].ready = ready;
        let o = with(observed(that_ran(), Some(found.clone())), |o| {
            (o.effects.memory_updated, o.effects.status_written) = (true, true);
            o.effects.remembered = true;
            o.observations.creation = Some(None);
            o.last = Some(at(&found, 1, objects));
            let listed = objects.unwrap_or_default().iter();
            let ours = |object: &ObjectRef| (object.clone(), ObjectState::Ours(None));
            o.observations.listed_objects = listed.map(ours).collect();
            o.observations.listed = Some(Arc::default());
        });
        match decide(&o, Timestamp::from_second(second).unwrap()) {
            Decision::Done(end) => end.requeue_after.map(|after| after.as_secs()),
            next => panic!("it does not end: {next:?}"),
        }
    };
    let objects = std::slice::from_ref(&object);
    // The pauses grow with the time since the start.
    for (second, pause) in [(1, 10), (61, 61), (122, 122), (100_000, 600)] {
        assert_eq!(requeue_after(Some(objects), 0, second), Some(pause));
        assert_eq!(requeue_after(Some(&[]), 0, second), Some(pause));
    }
    assert_eq!(
        requeue_after(Some(objects), 1, 61),
        None,
        "the pods are ready"
    );
    assert_eq!(
        requeue_after(None, 0, 61),
        Some(61),
        "its objects are not known"
    );
}

#[test]
fn running_train_jobs_wait_only_for_unserved_kinds() {
    for (class, interests) in [
        (Class::NotServed, InterestChange::Settle),
        (Class::Other, InterestChange::Forget),
    ] {
        let object = object("gang", ApplyMode::WhileSuspended);
        let step = Step::Observe(Observe::ListedObject(object.clone()));
        let o = with(observed(that_ran(), Some(job_set(false))), |o| {
            o.last = Some(at(&job_set(false), 0, Some(&[object])));
            failed(step, class)(o);
        });
        let Decision::Next(Step::Act(Action::UpdateMemory(update)), _) = decide(&o, now()) else {
            panic!("the state in memory is not updated");
        };
        assert_eq!(update.interests, interests);
    }
}

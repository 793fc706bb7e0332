//! A TrainJob whose JobSet runs.

use k8s_openapi::jiff::ToSpan as _;

use super::*;

#[test]
fn a_job_set_that_runs() {
    let keep = ApplyMode::WithJobSet;
    let follows = object("live", ApplyMode::Live);
    let kept = object("kept", keep);
    let runs = || job_set(false);
    let waits = || {
        let mut job_set = runs();
        job_set.jobs = counts(1);
        job_set
    };
    let complete = || {
        let mut job_set = waits();
        job_set.jobs[0].ready = 1;
        job_set
    };
    let unchanged = || {
        with(observed(that_ran(), Some(runs())), |o| {
            o.last = Some(at(&runs(), 1, None))
        })
    };
    let suspend = |change: fn(&mut Observed)| {
        with(
            observed(to_suspend(that_ran()), Some(job_set(false))),
            change,
        )
    };
    let changed = |objects: &[ObjectRef]| {
        let last = at(&runs(), 0, Some(objects));
        with(begun(that_ran(), Some(runs())), |o| o.last = Some(last))
    };
    let states = |o: &mut Observed, object: &ObjectRef, state: ObjectState| {
        o.observations.listed_objects.push((object.clone(), state));
    };
    let missing = || {
        with(changed(std::slice::from_ref(&kept)), |o| {
            states(o, &kept, ObjectState::Missing);
        })
    };
    let because = Reason::Running;
    let to = Reason::ToSuspend;
    let uid = || Action::Suspend { uid: runs().uid };
    let lost = |cause| {
        Fails(ReconcileFailure::Blocked(Finding::Lost(
            kept.clone(),
            cause,
        )))
    };
    for (name, o, expected) in [
        (
            "it is to be suspended",
            suspend(|_| {}),
            Asks(Observe::SnapshotMarks, to),
        ),
        (
            "its snapshot does not say that it has run",
            suspend(|o| o.observations.snapshot_marks = Some(Some(marks()))),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark::STARTED,
                    at: version("snapshot"),
                },
                to,
            ),
        ),
        (
            "it has no snapshot",
            suspend(|o| o.observations.snapshot_marks = Some(None)),
            Act(uid(), to),
        ),
        (
            "its snapshot may not be read",
            with(
                suspend(|_| {}),
                failed(Step::Observe(Observe::SnapshotMarks), Class::Refused),
            ),
            Act(uid(), to),
        ),
        (
            "the API server is away",
            with(
                suspend(|_| {}),
                failed(Step::Observe(Observe::SnapshotMarks), Class::Other),
            ),
            Fails(failure(Class::Other)),
        ),
        (
            "the controller has started",
            observed(that_ran(), Some(runs())),
            Act(Action::Remember(at(&runs(), 1, None)), because),
        ),
        (
            "nothing has changed, and all pods were created",
            with(observed(that_ran(), Some(complete())), |o| {
                o.last = Some(at(&complete(), 1, None))
            }),
            Ends,
        ),
        (
            "its Jobs or pods may not have been created",
            unchanged(),
            Asks(Observe::Creation, Reason::PodsMissing),
        ),
        (
            "its Jobs or pods may not have been created, but it has just started",
            with(unchanged(), |o| {
                let created = now().checked_sub(5.seconds()).unwrap();
                o.job = StoredJob::Found(Arc::new(JobFacts {
                    created,
                    ..that_ran()
                }));
            }),
            Ends,
        ),
        (
            "its Jobs or pods are being created",
            with(unchanged(), |o| o.observations.creation = Some(None)),
            Ends,
        ),
        (
            "its Jobs or pods cannot be created",
            with(unchanged(), |o| {
                o.observations.creation = Some(Some(failure(Class::Other)));
            }),
            Fails(failure(Class::Other)),
        ),
        (
            "nothing has changed, but its pods wait, perhaps for an object that was deleted",
            with(observed(that_ran(), Some(waits())), |o| {
                o.last = Some(at(&runs(), 1, Some(std::slice::from_ref(&kept))))
            }),
            Asks(Observe::ListedObject(kept.clone()), because),
        ),
        (
            "the TrainJob has changed",
            with(observed(that_ran(), Some(runs())), |o| {
                o.last = Some(at(&runs(), 0, None))
            }),
            Asks(Observe::ListedObjects, because),
        ),
        (
            "it has an object",
            changed(std::slice::from_ref(&kept)),
            Asks(Observe::ListedObject(kept.clone()), because),
        ),
        (
            "an object is missing",
            with(missing(), |o| o.observations.live_train_job = None),
            Asks(Observe::LiveTrainJob, because),
        ),
        (
            "an object is missing, and so is the snapshot",
            with(missing(), |o| o.observations.snapshot = Some(None)),
            lost(Cause::NoSnapshot),
        ),
        (
            "an object is missing, and is not rendered any more",
            with(missing(), |o| {
                o.observations.snapshot = Some(Some(started_snapshot()));
                renders(o, PINNED, rendered(&[]));
            }),
            lost(Cause::NotRendered),
        ),
        (
            "an object is missing, and is known to be",
            with(missing(), |o| {
                o.observations.snapshot = Some(Some(started_snapshot()));
                let mut facts = rendered(std::slice::from_ref(&kept));
                facts.objects[0].state = Some(ObjectState::Missing);
                renders(o, PINNED, facts);
            }),
            Act(Action::CreateObject(kept.clone()), because),
        ),
        (
            "keys are missing",
            with(missing(), |o| {
                o.observations.snapshot = Some(Some(started_snapshot()));
                let mut facts = rendered(std::slice::from_ref(&kept));
                facts.objects[0].has_keys = true;
                renders(o, PINNED, facts);
            }),
            Fails(ReconcileFailure::Blocked(Finding::KeysLost(kept.clone()))),
        ),
        (
            "a live object may have to change",
            with(changed(std::slice::from_ref(&follows)), |o| {
                states(o, &follows, ObjectState::Ours(None));
            }),
            Asks(Observe::Snapshot, because),
        ),
        (
            "another owner has an object",
            with(changed(std::slice::from_ref(&kept)), |o| {
                states(o, &kept, ObjectState::Unusable(failure(Class::Foreign)));
            }),
            Fails(failure(Class::Foreign)),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn a_plan_that_is_pinned_leaves_live_objects_as_they_are() {
    let follows = object("live", ApplyMode::Live);
    let runs = job_set(false);
    let last = at(&runs, 0, Some(std::slice::from_ref(&follows)));
    let o = with(begun(that_ran(), Some(runs)), |o| {
        o.last = Some(last);
        o.observations
            .listed_objects
            .push((follows, ObjectState::Ours(None)));
        o.observations.snapshot = Some(Some(started_snapshot()));
        o.observations.creation = Some(None);
        failed(
            Step::Observe(Observe::Rendering(PINNED)),
            Class::PlanIsPinned,
        )(o);
        (
            o.effects.remembered,
            o.effects.memory_updated,
            o.effects.status_written,
        ) = (true, true, true);
    });
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("it does not end");
    };
    assert_eq!(
        end.reports,
        [Report::NotFollowed(failure(Class::PlanIsPinned))]
    );
}

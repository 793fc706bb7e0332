//! A TrainJob whose JobSet runs.

use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::watch::JobCounts;

/// A running JobSet with these counts, whose TrainJob had this last reconcile.
fn runs(job: JobFacts, counts: &[JobCounts], change: impl FnOnce(&mut World)) -> World {
    world(job, |world| {
        world.job_set = Some(SimJobSet {
            started: true,
            has_run: true,
            counts: Some(counts.into()),
            ..SimJobSet::default()
        });
        change(world);
    })
}

/// The counts of a JobSet with all its pods.
fn complete() -> Box<[JobCounts]> {
    let mut complete = counts(1);
    complete[0].ready = 1;
    complete
}

#[test]
fn a_job_set_that_is_to_be_suspended() {
    let suspends = |change: fn(&mut World)| {
        runs(to_suspend(that_ran()), &complete(), |world| {
            world.snapshot = Some(SimSnapshot::default());
            change(world);
        })
    };
    check(vec![
        (
            "its snapshot does not show that it has run",
            suspends(|_| {}),
            "read marks, mark started, suspend",
            None,
        ),
        (
            "its snapshot shows that it has run",
            suspends(|world| world.snapshot.as_mut().unwrap().started = true),
            "read marks, suspend",
            None,
        ),
        (
            "it has no snapshot",
            suspends(|world| world.snapshot = None),
            "read marks, suspend",
            None,
        ),
        (
            "another owner has its snapshot",
            suspends(|world| world.snapshot.as_mut().unwrap().ours = false),
            "read marks, suspend; warns of foreign",
            None,
        ),
        (
            "its snapshot may not be read",
            suspends(|world| world.fail("read marks", Fault::Refused)),
            "read marks, suspend; warns of api",
            None,
        ),
        (
            "its snapshot may not be marked",
            suspends(|world| world.fail("mark started", Fault::Refused)),
            "read marks, mark started, suspend; warns of api",
            None,
        ),
        (
            "the API server fails",
            suspends(|world| world.fail("read marks", Fault::Fails)),
            "read marks",
            Some("api"),
        ),
    ]);
}

#[test]
fn a_job_set_that_runs() {
    let kept = object("kept", ApplyMode::WithJobSet);
    let live = object("live", ApplyMode::Live);
    let once = object("once", ApplyMode::Once);
    let remembered =
        |counts: &[JobCounts]| runs(that_ran(), counts, |world| remembers(world, 1, None));
    let changed = |object: &ObjectRef, change: &dyn Fn(&mut World)| {
        runs(that_ran(), &complete(), |world| {
            remembers(world, 0, Some(std::slice::from_ref(object)));
            world.rendered = [object.clone()].into();
            world.snapshot = Some(SimSnapshot {
                started: true,
                ..SimSnapshot::default()
            });
            change(world);
        })
    };
    let just_started = JobFacts {
        created: Timestamp::from_second(995).unwrap(),
        ..that_ran()
    };
    check(vec![
        (
            "the controller has started",
            runs(that_ran(), &complete(), |_| {}),
            "remember",
            None,
        ),
        (
            "it was recreated, and the snapshot does not show it",
            runs(that_ran(), &complete(), |world| {
                world.job_set.as_mut().unwrap().recreated = true;
                let recreate = true;
                world.snapshot = Some(SimSnapshot {
                    recreate,
                    ..SimSnapshot::default()
                });
            }),
            "read marks, mark recreated, remember",
            None,
        ),
        (
            "nothing has changed, and all pods were created",
            remembered(&complete()),
            "",
            None,
        ),
        (
            "its Jobs or pods may not have been created",
            remembered(&[]),
            "check creation",
            None,
        ),
        (
            "its Jobs or pods may not have been created, but it has just started",
            runs(just_started, &[], |world| remembers(world, 1, None)),
            "",
            None,
        ),
        (
            "its Jobs or pods cannot be created",
            world_with(remembered(&[]), |world| {
                world.fail("check creation", Fault::Fails);
            }),
            "check creation",
            Some("api"),
        ),
        (
            "nothing has changed, but its pods wait, perhaps for an object that was deleted",
            runs(that_ran(), &counts(1), |world| {
                remembers(world, 1, Some(std::slice::from_ref(&kept)));
                exists(world, &kept, true);
            }),
            "look at a-kept, remember, check creation",
            None,
        ),
        (
            "the TrainJob has changed, and its objects are not known",
            runs(that_ran(), &complete(), |world| remembers(world, 0, None)),
            "read list, remember",
            None,
        ),
        (
            "an object exists",
            changed(&kept, &|world| exists(world, &kept, true)),
            "look at a-kept, remember",
            None,
        ),
        (
            "an object is missing",
            changed(&kept, &|_| {}),
            "look at a-kept, confirm TrainJob, read TrainJob, read snapshot, render pinned snapshot, read a-kept, create a-kept, remember",
            None,
        ),
        (
            "an object is missing, and the TrainJob may have been deleted",
            changed(&kept, &|world| world.job_is_newer()),
            "look at a-kept, confirm TrainJob",
            Some("conflict"),
        ),
        (
            "an object is missing, and so is the snapshot",
            changed(&kept, &|world| world.snapshot = None),
            "look at a-kept, confirm TrainJob, read TrainJob, read snapshot",
            Some("lost"),
        ),
        (
            "an object is missing, and is no longer rendered",
            changed(&kept, &|world| world.rendered = [].into()),
            "look at a-kept, confirm TrainJob, read TrainJob, read snapshot, render pinned snapshot",
            Some("lost"),
        ),
        (
            "keys are missing",
            changed(&once, &|_| {}),
            "look at a-once, confirm TrainJob, read TrainJob, read snapshot, render pinned snapshot",
            Some("lost"),
        ),
        (
            "a live object follows the TrainJob",
            changed(&live, &|world| exists(world, &live, true)),
            "look at a-live, read TrainJob, read snapshot, render pinned snapshot, read a-live, force a-live, remember",
            None,
        ),
        (
            "another owner has an object",
            changed(&kept, &|world| exists(world, &kept, false)),
            "look at a-kept",
            Some("foreign"),
        ),
    ]);
}

#[test]
fn lost_objects_are_named_with_the_reason() {
    let lost = |object: &ObjectRef, change: fn(&mut World)| {
        let mut world = runs(that_ran(), &complete(), |world| {
            remembers(world, 0, Some(std::slice::from_ref(object)));
            world.rendered = [object.clone()].into();
            world.snapshot = Some(SimSnapshot::default());
            change(world);
        });
        world.reconcile().unwrap().error.unwrap().to_string()
    };
    let kept = object("kept", ApplyMode::WithJobSet);
    for (text, because) in [
        (
            lost(&kept, |world| world.snapshot = None),
            "the snapshot is missing too",
        ),
        (
            lost(&kept, |world| world.rendered = [].into()),
            "no longer creates it",
        ),
    ] {
        assert!(
            text.contains("`a-kept`") && text.contains(because),
            "{text}"
        );
    }
    let keys = lost(&object("once", ApplyMode::Once), |_| {});
    assert!(keys.starts_with("Secret `a-once` is missing"), "{keys}");
}

fn world_with(mut world: World, change: impl FnOnce(&mut World)) -> World {
    change(&mut world);
    world
}

#[test]
fn a_plan_that_is_pinned_leaves_live_objects_as_they_are() {
    let live = object("live", ApplyMode::Live);
    let mut world = runs(that_ran(), &complete(), |world| {
        remembers(world, 0, Some(std::slice::from_ref(&live)));
        exists(world, &live, true);
        world.snapshot = Some(SimSnapshot::default());
        world.rendering = Some(Fault::Pinned);
    });
    let end = world.reconcile().unwrap();
    assert!(end.error.is_none());
    let [Report::NotFollowed(error)] = &end.reports[..] else {
        panic!("{:?}", end.reports);
    };
    assert_eq!(error.kind(), "plan_is_pinned");
    assert!(!world.done.iter().any(|done| done.starts_with("force")));
}

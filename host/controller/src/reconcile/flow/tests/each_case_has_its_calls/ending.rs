//! The status and the deadline, at the end of a reconcile.

use super::*;
use crate::reconcile::cluster::KeptInterests;

fn suspended() -> World {
    world(to_suspend(job()), |world| {
        world.job_set = Some(SimJobSet {
            suspended: true,
            ..SimJobSet::default()
        });
        remembers(world, 1, None);
    })
}

#[test]
fn the_status_is_written_once_it_has_changed() {
    let mut world = suspended();
    world.reconcile();
    assert_eq!(world.done, ["settle", "write status"]);
    assert!(world.job.status.is_true("Suspended").is_some());
    world.reconcile();
    assert_eq!(world.done, ["settle"]);
}

/// If the status cannot be written either, the annotation shows the earlier error, and the reconcile ends with that of the status.
#[test]
fn errors_are_shown_even_if_the_status_cannot_be_written() {
    let mut world = suspended();
    world.controllers[0].last = None;
    world.fail("read TrainJob", Fault::Input);
    world.fail("write status", Fault::Fails);
    let end = world.reconcile().unwrap();
    assert_eq!(
        world.done,
        [
            "begin",
            "read TrainJob",
            "settle",
            "write status",
            "write error"
        ]
    );
    let shown = world.job.error.unwrap();
    assert!(shown.starts_with("RuntimeNotFound"), "{shown}");
    assert_eq!(end.error.unwrap().kind(), "api");
}

#[test]
fn job_sets_are_deleted_at_their_deadline() {
    let overdue = |second: i64| {
        let mut late = job();
        late.desired.deadline = Some(10);
        let mut world = world(late, |world| {
            world.job_set = Some(SimJobSet::default());
            world.second = second;
            remembers(world, 1, None);
        });
        let end = world.reconcile().unwrap();
        (end.requeue_after.map(|after| after.as_secs()), world)
    };
    let (requeue_after, world) = overdue(4);
    assert_eq!(requeue_after, Some(6));
    assert!(world.job_set.is_some());
    let (requeue_after, world) = overdue(10);
    assert_eq!(requeue_after, None);
    assert_eq!(
        world.done,
        ["settle", "forget last", "write status", "delete JobSet"]
    );
    assert!(world.job_set.is_none());
}

/// Pods may wait for an object that was deleted, or may not be created, and then nothing changes.
#[test]
fn a_job_set_whose_pods_wait_is_reconciled_again() {
    let kept = object("kept", ApplyMode::WithJobSet);
    let requeue_after = |objects: Option<&[ObjectRef]>, ready: i64, second: i64| {
        let mut counts = counts(1);
        counts[0].ready = ready;
        let mut world = world(that_ran(), |world| {
            world.job_set = Some(SimJobSet {
                counts: Some(counts),
                ..SimJobSet::default()
            });
            exists(world, &kept, true);
            remembers(world, 1, objects);
            world.second = second;
        });
        let end = world.reconcile().unwrap();
        assert!(end.error.is_none());
        end.requeue_after.map(|after| after.as_secs())
    };
    let objects = std::slice::from_ref(&kept);
    // The pauses grow with the time since the start.
    for (second, pause) in [(1, 10), (61, 61), (122, 122), (100_000, 600)] {
        assert_eq!(requeue_after(Some(objects), 0, second), Some(pause));
        assert_eq!(requeue_after(Some(&[]), 0, second), Some(pause));
    }
    let pause = requeue_after(Some(objects), 1, 61);
    assert_eq!(pause, None, "the pods are ready");
    let pause = requeue_after(None, 0, 61);
    assert_eq!(pause, Some(61), "its objects are not known");
}

#[test]
fn running_train_jobs_wait_only_for_unserved_kinds() {
    for (fault, interests) in [
        (Fault::NotServed, KeptInterests::OfThisReconcile),
        (Fault::Fails, KeptInterests::None),
    ] {
        let gang = object("gang", ApplyMode::WhileSuspended);
        let mut world = world(that_ran(), |world| {
            world.job_set = Some(SimJobSet::default());
            remembers(world, 0, Some(&[gang]));
            world.fail("look at a-gang", fault);
        });
        assert!(world.reconcile().unwrap().error.is_some());
        assert_eq!(world.controllers[0].interests, Some(interests));
    }
}

#[test]
fn interests_are_dropped_once_nothing_can_change() {
    let mut ended = job();
    ended.desired.not_supported = Some("no such kind".to_owned());
    let mut deleting = job();
    deleting.deleting = true;
    for (job, forgets_last) in [(ended, true), (deleting, false)] {
        let mut world = world(job, |world| {
            world.job_set = Some(SimJobSet::default());
            remembers(world, 1, None);
        });
        world.reconcile();
        assert_eq!(world.controllers[0].interests, Some(KeptInterests::None));
        assert_eq!(world.controllers[0].last.is_none(), forgets_last);
    }
    let mut waits = world(job(), |world| world.runtime = false);
    waits.reconcile();
    assert_eq!(
        waits.controllers[0].interests,
        Some(KeptInterests::OfThisReconcile)
    );
}

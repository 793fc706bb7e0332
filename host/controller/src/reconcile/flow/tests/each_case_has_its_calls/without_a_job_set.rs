//! A TrainJob whose JobSet was not created yet, or was deleted.

use super::*;

#[test]
fn before_anything_is_created() {
    let deleting = |mut job: JobFacts| {
        job.deleting = true;
        job
    };
    let has = |found: SimJobSet| move |world: &mut World| world.job_set = Some(found);
    let runs = || has(SimJobSet::default());
    let kept = || {
        has(SimJobSet {
            deleting: Some("example.com/keep"),
            ..SimJobSet::default()
        })
    };
    let foreign = || {
        let ours = false;
        has(SimJobSet {
            ours,
            ..SimJobSet::default()
        })
    };
    let mut ended = job();
    ended.desired.not_supported = Some("no such kind".to_owned());
    check(vec![
        ("it has ended", world(ended, |_| {}), "", None),
        ("it is deleted", world(deleting(job()), runs()), "", None),
        (
            "it is deleted and suspended, and its JobSet runs",
            world(deleting(to_suspend(job())), runs()),
            "read marks, suspend",
            None,
        ),
        (
            "its JobSet is deleted",
            world(job(), kept()),
            "",
            Some("deleting"),
        ),
        (
            "it is deleted with its JobSet",
            world(deleting(job()), kept()),
            "",
            Some("deleting"),
        ),
        (
            "another owner has its JobSet",
            world(job(), foreign()),
            "read owner",
            Some("foreign"),
        ),
        (
            "an earlier TrainJob has its JobSet",
            world(job(), |world| {
                foreign()(world);
                world.owner_is_gone = true;
            }),
            "read owner",
            Some("stale"),
        ),
    ]);
    for (job, is_recreated) in [(job(), true), (deleting(job()), false)] {
        let text = world(job, kept()).reconcile().unwrap().error.unwrap();
        let text = text.to_string();
        assert!(text.contains("example.com/keep"), "{text}");
        assert_eq!(text.contains("is recreated"), is_recreated, "{text}");
    }
}

#[test]
fn nothing_is_changed_while_the_job_set_cannot_be_decoded() {
    let mut world = world(job(), |_| {});
    let end = world.refuse(super::super::error(Fault::Fails));
    assert!(end.error.is_some());
    assert_eq!(world.done, ["write error"]);
}

#[test]
fn without_a_job_set() {
    let mut had_one = job();
    had_one.status.jobs_status = counts(0).into();
    let snapshot = |change: fn(&mut SimSnapshot)| {
        move |world: &mut World| {
            let mut snapshot = SimSnapshot::default();
            change(&mut snapshot);
            world.snapshot = Some(snapshot);
        }
    };
    let deleted = |change: fn(&mut SimSnapshot)| {
        move |world: &mut World| {
            world.job_set = Some(SimJobSet::default());
            world.delete_job_set_now();
            snapshot(change)(world);
        }
    };
    check(vec![
        (
            "it is new",
            world(job(), |_| {}),
            "begin, read TrainJob, read runtime, render runtime, create snapshot, apply JobSet, remember",
            None,
        ),
        (
            "plugins look up objects",
            world(job(), |world| world.needs = 2),
            "begin, read TrainJob, read runtime, render runtime, look up, look up, create snapshot, apply JobSet, remember",
            None,
        ),
        (
            "its JobSet will expire",
            world(job(), |world| world.expires = true),
            "begin, read TrainJob, read runtime, render runtime, create snapshot, apply JobSet, mark started, remember",
            None,
        ),
        (
            "it had a JobSet",
            world(had_one, |_| {}),
            "begin, read TrainJob, confirm absence, read runtime, render runtime, create snapshot, apply JobSet, remember",
            None,
        ),
        (
            "its JobSet was deleted, and the TrainJob too, which the watch does not show yet",
            world(job(), |world| {
                deleted(|_| {})(world);
                world.fail("confirm absence", Fault::Conflict);
            }),
            "begin, read TrainJob, confirm absence",
            Some("conflict"),
        ),
        (
            "its creation failed, or was not answered",
            world(job(), |world| {
                world.controllers[0].unfinished = true;
                snapshot(|_| {})(world);
            }),
            "begin, read TrainJob, confirm absence, read runtime, render runtime, create snapshot, read snapshot, replace snapshot, apply JobSet, remember",
            None,
        ),
        (
            "its runtime and its snapshot are missing",
            world(job(), |world| world.runtime = false),
            "begin, read TrainJob, read runtime, read snapshot",
            Some("no_runtime"),
        ),
        (
            "its runtime is missing, and nothing vouches for its snapshot",
            world(job(), |world| {
                world.runtime = false;
                snapshot(|_| {})(world);
            }),
            "begin, read TrainJob, read runtime, read snapshot, confirm absence, read runtime",
            Some("no_runtime"),
        ),
        (
            "its snapshot was never used, and the runtime was corrected",
            world(job(), snapshot(|it| it.fingerprint = 0)),
            "begin, read TrainJob, read runtime, render runtime, create snapshot, read snapshot, confirm absence, replace snapshot, apply JobSet, remember",
            None,
        ),
        (
            "only its snapshot shows that its JobSet has run",
            world(job(), snapshot(|it| it.started = true)),
            "begin, read TrainJob, read runtime, render runtime, create snapshot, read snapshot, confirm absence, note unseen end; warns of end_is_unknown",
            None,
        ),
        (
            "its JobSet has run, and its deletion was not seen",
            world(that_ran(), |_| {}),
            "begin, read TrainJob, confirm absence, read snapshot, note unseen end; warns of end_is_unknown",
            None,
        ),
        (
            "its JobSet has run, and another was created in the meantime",
            world(that_ran(), |world| {
                world.fail("confirm absence", Fault::Conflict);
            }),
            "begin, read TrainJob, confirm absence",
            Some("conflict"),
        ),
        (
            "its JobSet has run, and was seen to be deleted",
            world(that_ran(), deleted(|_| {})),
            "begin, read TrainJob, confirm absence, read snapshot, mark started and deleted, render pinned snapshot, apply JobSet recreated, mark recreated, remember",
            None,
        ),
        (
            "its JobSet was deleted, and the snapshot shows it",
            world(
                that_ran(),
                deleted(|it| (it.started, it.recreate) = (true, true)),
            ),
            "begin, read TrainJob, confirm absence, read snapshot, render pinned snapshot, apply JobSet recreated, mark recreated, remember",
            None,
        ),
        (
            "another client has created a JobSet of its name",
            world(job(), |world| {
                world.fail("apply JobSet", Fault::Conflict);
            }),
            "begin, read TrainJob, read runtime, render runtime, create snapshot, apply JobSet, read owner",
            Some("conflict"),
        ),
    ]);
    let mut recreated = world(that_ran(), deleted(|_| {}));
    recreated.reconcile();
    assert!(recreated.controllers[0].deleted.is_none());
}

/// Its JobSet was deleted before the controller started, or was never created.
#[test]
fn nothing_vouches_for_its_snapshot() {
    let has = |fingerprint, runtime| {
        world(that_ran(), |world| {
            world.snapshot = Some(SimSnapshot {
                started: true,
                recreate: true,
                fingerprint,
                ..SimSnapshot::default()
            });
            world.runtime = runtime;
        })
    };
    check(vec![
        (
            "the current runtime gives the same snapshot",
            has(1, true),
            "begin, read TrainJob, confirm absence, read snapshot, read runtime, render pinned runtime, apply JobSet recreated, mark recreated, remember",
            None,
        ),
        (
            "the current runtime gives another one, and it is immutable",
            has(0, true),
            "begin, read TrainJob, confirm absence, read snapshot, read runtime, render pinned runtime",
            Some("snapshot"),
        ),
        (
            "it cannot be rendered",
            has(1, false),
            "begin, read TrainJob, confirm absence, read snapshot, read runtime",
            Some("no_runtime"),
        ),
    ]);
}

#[test]
fn objects_beside_a_new_job_set() {
    let [plain, once, live] = [
        ("plain", ApplyMode::WithJobSet),
        ("once", ApplyMode::Once),
        ("live", ApplyMode::Live),
    ]
    .map(|(name, mode)| object(name, mode));
    let refused = |fault| move |world: &mut World| world.fail("create a-once", fault);
    let nothing = || Box::new(|_: &mut World| {}) as Box<dyn FnOnce(&mut World)>;
    let ours = |object: ObjectRef, ours| {
        Box::new(move |world: &mut World| exists(world, &object, ours))
            as Box<dyn FnOnce(&mut World)>
    };
    for (name, object, change, calls, kind) in [
        (
            "missing",
            &plain,
            nothing(),
            "read a-plain, apply a-plain",
            None,
        ),
        (
            "ours",
            &live,
            ours(live.clone(), true),
            "read a-live, force a-live",
            None,
        ),
        (
            "another owner's",
            &live,
            ours(live.clone(), false),
            "read a-live",
            Some("foreign"),
        ),
        (
            "created once",
            &once,
            nothing(),
            "read a-once, create a-once",
            None,
        ),
        (
            "created once, and ours",
            &once,
            ours(once.clone(), true),
            "read a-once",
            None,
        ),
        (
            "created by another client in the meantime",
            &once,
            Box::new(|world| world.created_by_another = true),
            "read a-once, create a-once, read a-once",
            None,
        ),
        (
            "created and deleted in the meantime",
            &once,
            Box::new(refused(Fault::Conflict)),
            "read a-once, create a-once, read a-once",
            Some("conflict"),
        ),
        (
            "invalid",
            &once,
            Box::new(refused(Fault::Invalid)),
            "read a-once, create a-once",
            Some("api"),
        ),
    ] {
        let mut world = world(job(), |world| world.rendered = [object.clone()].into());
        change(&mut world);
        let end = world.reconcile().unwrap();
        let done = world.done.join(", ");
        let before = "begin, read TrainJob, read runtime, render runtime, create snapshot, ";
        let rest = done.strip_prefix(before).unwrap();
        let after = match kind {
            None => ", apply JobSet, remember, settle",
            Some(_) => ", settle",
        };
        assert!(
            rest.starts_with(&format!("{calls}{after}")),
            "{name}: {done}"
        );
        assert_eq!(end.error.map(|error| error.kind()), kind, "{name}");
    }
}

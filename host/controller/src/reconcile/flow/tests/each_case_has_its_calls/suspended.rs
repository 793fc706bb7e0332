//! A TrainJob whose JobSet is suspended.

use super::*;

#[test]
fn a_suspended_job_set_that_has_never_run() {
    let has = |job: JobFacts, inputs: &str, change: fn(&mut World)| {
        world(job, |world| {
            world.job_set = Some(SimJobSet {
                suspended: true,
                inputs: Some(inputs.into()),
                ..SimJobSet::default()
            });
            world.snapshot = Some(SimSnapshot::default());
            change(world);
        })
    };
    let waits = |inputs, change| has(to_suspend(job()), inputs, change);
    let runs = |change| has(job(), "inputs of 1", change);
    fn job_set(world: &mut World) -> &mut SimJobSet {
        world.job_set.as_mut().unwrap()
    }
    fn snapshot(world: &mut World) -> &mut SimSnapshot {
        world.snapshot.as_mut().unwrap()
    }
    let same = "inputs of 1#rendering of 1";
    check(vec![
        (
            "it was rendered from the same inputs",
            waits(same, |_| {}),
            "remember",
            None,
        ),
        (
            "it was rendered from other inputs",
            waits("others", |_| {}),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "it was recreated, and its snapshot may be outdated",
            waits(same, |world| job_set(world).recreated = true),
            "begin, read TrainJob, read snapshot, render snapshot, remember",
            None,
        ),
        (
            "it was rendered from the same inputs, and the last reconcile did not end",
            waits(same, |world| world.controllers[0].unfinished = true),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "it was rendered from the same inputs, and the last reconcile failed before the controller was restarted",
            waits(same, |world| world.job.error = Some("a".into())),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "it does not vouch for its snapshot",
            waits(same, |world| {
                remembers(world, 1, None);
                job_set(world).vouches_for = Some("another".into());
                world.plugins = 2;
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "the last reconcile left it so",
            waits("others", |world| remembers(world, 1, None)),
            "",
            None,
        ),
        (
            "other plugins render it in the same way",
            waits(same, |world| {
                remembers(world, 1, None);
                world.plugins = 2;
            }),
            "begin, read TrainJob, read snapshot, render snapshot, remember",
            None,
        ),
        (
            "other plugins render it in another way",
            waits(same, |world| {
                remembers(world, 1, None);
                world.plugins = 1;
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, replace snapshot, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "other plugins were loaded before the controller was restarted, and rendered it in the same way",
            waits("inputs of 1 with 2#rendering of 1", |_| {}),
            "begin, read TrainJob, read snapshot, render snapshot, remember",
            None,
        ),
        (
            "other plugins render it in the same way, and an earlier release did not note how",
            waits("inputs of 1", |world| {
                remembers(world, 1, None);
                world.plugins = 2;
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "other plugins cannot render it",
            waits(same, |world| {
                remembers(world, 1, None);
                (world.plugins, world.rendering) = (2, Some(Fault::Input));
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet",
            Some("no_runtime"),
        ),
        (
            "other plugins are loaded, and it has run, which was not noted",
            waits(same, |world| {
                remembers(world, 1, None);
                (world.plugins, job_set(world).started) = (1, true);
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, mark started, render pinned snapshot, remember",
            None,
        ),
        (
            "the TrainJob has changed since",
            waits(same, |world| remembers(world, 2, None)),
            "begin, read TrainJob, read snapshot, render snapshot, remember",
            None,
        ),
        (
            "an object that was looked up has changed",
            waits(same, |world| world.controllers[0].outdated = true),
            "begin, read TrainJob, read snapshot, render snapshot, remember",
            None,
        ),
        (
            "its snapshot is missing",
            waits("others", |world| world.snapshot = None),
            "begin, read TrainJob, read snapshot, read runtime, render runtime, read JobSet, create snapshot, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "another client creates its snapshot in the meantime",
            waits("others", |world| {
                world.snapshot = None;
                world.fail("create snapshot", Fault::Conflict);
            }),
            "begin, read TrainJob, read snapshot, read runtime, render runtime, read JobSet, create snapshot",
            Some("conflict"),
        ),
        (
            "its snapshot cannot be used, and may be replaced",
            waits("others", |world| snapshot(world).broken = true),
            "begin, read TrainJob, read snapshot, read marks, read runtime, render runtime, read JobSet, replace snapshot, compare with all, apply JobSet over, remember; warns of snapshot",
            None,
        ),
        (
            "its snapshot cannot be used, and is immutable",
            waits("others", |world| {
                (snapshot(world).broken, snapshot(world).started) = (true, true);
            }),
            "begin, read TrainJob, read snapshot, read marks, read runtime, remember; warns of snapshot",
            None,
        ),
        (
            "another owner has its snapshot",
            waits("others", |world| snapshot(world).ours = false),
            "begin, read TrainJob, read snapshot",
            Some("foreign"),
        ),
        (
            "the snapshot still shows that there is no JobSet",
            waits("others", |world| snapshot(world).recreate = true),
            "begin, read TrainJob, read snapshot, mark recreated, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "the snapshot was rendered from an earlier version of the TrainJob",
            runs(|world| snapshot(world).fingerprint = 0),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, replace snapshot, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "it has run and was suspended, which was not noted",
            runs(|world| job_set(world).started = true),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, mark started, render pinned snapshot, compare with rendered placement, resume, remember",
            None,
        ),
        (
            "it is to run",
            runs(|_| {}),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, remember",
            None,
        ),
        (
            "its Jobs have entries to lose",
            runs(|world| world.placement = 1),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over held, read JobSet, list Jobs, apply JobSet over, remember",
            None,
        ),
        (
            "immutable fields would change",
            runs(|world| world.mutable = false),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, check creatable, delete JobSet, remember",
            None,
        ),
        (
            "immutable fields would change, and another JobSet could not be created",
            runs(|world| {
                world.mutable = false;
                world.fail("check creatable", Fault::Refused);
            }),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over, check creatable",
            Some("api"),
        ),
        (
            "immutable fields would change while pods of it end",
            runs(|world| (world.mutable, job_set(world).active) = (false, true)),
            "begin, read TrainJob, read snapshot, render snapshot, read JobSet, compare with all, apply JobSet over",
            Some("api"),
        ),
    ]);
    let end = runs(|world| job_set(world).started = true).reconcile();
    assert!(matches!(end.unwrap().reports[..], [Report::BothMarks]));
}

#[test]
fn a_suspended_job_set_that_has_run() {
    let has = |job: JobFacts, change: fn(&mut World)| {
        world(job, |world| {
            world.job_set = Some(SimJobSet {
                suspended: true,
                started: true,
                has_run: true,
                ..SimJobSet::default()
            });
            world.snapshot = Some(SimSnapshot {
                started: true,
                ..SimSnapshot::default()
            });
            change(world);
        })
    };
    let stays = |change| has(to_suspend(that_ran()), change);
    let runs = |change| has(that_ran(), change);
    check(vec![
        (
            "it stays suspended",
            stays(|_| {}),
            "begin, read TrainJob, read snapshot, remember",
            None,
        ),
        (
            "it stays suspended, and an object follows the TrainJob",
            stays(|world| {
                world.rendered = [object("gang", ApplyMode::WhileSuspended)].into();
                let objects = world.rendered.clone();
                world.snapshot.as_mut().unwrap().objects = objects;
            }),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, read a-gang, apply a-gang, remember",
            None,
        ),
        (
            "it stays suspended without a snapshot, for which nothing could vouch",
            stays(|world| world.snapshot = None),
            "begin, read TrainJob, read snapshot, read runtime, render pinned runtime, remember",
            None,
        ),
        (
            "only its status shows that it has run",
            runs(|world| world.snapshot.as_mut().unwrap().started = false),
            "begin, read TrainJob, read snapshot, mark started, read JobSet, render pinned snapshot, compare with rendered placement, resume, remember",
            None,
        ),
        (
            "its snapshot is missing",
            runs(|world| world.snapshot = None),
            "begin, read TrainJob, read snapshot, read runtime, render pinned runtime, create snapshot, read JobSet, compare with rendered placement, resume, remember",
            None,
        ),
        (
            "its snapshot and its runtime are missing",
            runs(|world| (world.snapshot, world.runtime) = (None, false)),
            "begin, read TrainJob, read snapshot, read runtime, read JobSet, compare with live placement, resume, remember; warns of no_runtime",
            None,
        ),
        (
            "another owner has its snapshot, and its runtime is missing",
            runs(|world| {
                world.snapshot.as_mut().unwrap().ours = false;
                world.runtime = false;
            }),
            "begin, read TrainJob, read snapshot, read runtime, read JobSet, compare with live placement, resume, remember; warns of foreign; warns of no_runtime",
            None,
        ),
        (
            "its plugins have changed",
            runs(|world| world.rendering = Some(Fault::Pinned)),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with noted placement, resume, remember; warns of plan_is_pinned",
            None,
        ),
        (
            "its pods are where they should be",
            runs(|_| {}),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, resume, remember",
            None,
        ),
        (
            "its pods are elsewhere",
            runs(|world| world.placement = 1),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, relocate, read JobSet, compare again, list Jobs, resume, remember",
            None,
        ),
        (
            "a Job is elsewhere",
            runs(|world| world.add_old_job(false)),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, list Jobs, delete node-0",
            Some("old_placement"),
        ),
        (
            "a Job that is elsewhere is being deleted",
            runs(|world| world.add_old_job(true)),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, list Jobs",
            Some("old_placement"),
        ),
        (
            "a Job is elsewhere, and its pods have not ended",
            runs(|world| {
                world.add_old_job(false);
                world.job_set.as_mut().unwrap().active = true;
            }),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, list Jobs",
            Some("old_placement"),
        ),
        (
            "Jobs may not be listed",
            runs(|world| {
                world.add_old_job(false);
                world.fail("list Jobs", Fault::Refused);
            }),
            "begin, read TrainJob, read snapshot, read JobSet, render pinned snapshot, compare with rendered placement, list Jobs, resume, remember; warns of api",
            None,
        ),
    ]);
}

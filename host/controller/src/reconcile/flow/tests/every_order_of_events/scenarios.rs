//! The TrainJobs that are explored, each with what can happen to it.

use std::sync::Arc;

use trainyard_model::object::ApplyMode::{self, Live, Once, WhileSuspended, WithJobSet};

use super::{
    super::{
        job, now, object, to_suspend,
        world::{
            Event::{self, *},
            World,
        },
    },
    search::Scenario,
    spec::settle,
};

/// What happens to every JobSet.
const RUNS: [Event; 3] = [JobSetActs, Completes, Restarts(0)];

/// What happens to the watch of JobSets.
const WATCH: [Event; 3] = [WatchOfJobSetFallsBehind(0), WatchOfJobSetTells(0), Lists(0)];

/// What happens to the watch of TrainJobs.
const WATCH_OF_JOBS: [Event; 2] = [WatchOfJobFallsBehind(0), WatchOfJobTells(0)];

/// What other clients do.
const OTHERS: [Event; 13] = [
    Suspends,
    Resumes,
    JobSetIsDeleted,
    JobSetBeginsToBeDeleted,
    JobSetIsUnsuspended,
    JobSetOfAnotherOwner,
    SnapshotIsDeleted,
    SnapshotBreaks,
    SnapshotIsTaken,
    ObjectIsDeleted(0),
    ObjectIsTaken(0),
    ObjectIsDeleted(1),
    ObjectIsTaken(1),
];

/// What administrators do.
const ADMINISTRATORS: [Event; 14] = [
    RuntimeIsDeleted,
    RuntimeIsCreated,
    RenderingIsRefused,
    RenderingIsPossible,
    PluginsAreReplaced(0),
    PluginsAreReplaced(1),
    PluginsAreReplaced(4),
    KindsAreRemoved,
    KindsAreServed,
    AdmissionRefuses,
    AdmissionAllows,
    LookupsChange,
    Suspends,
    Resumes,
];

/// A TrainJob that is to be suspended or to run, with an object of each of these modes.
fn world(suspend: bool, modes: &[ApplyMode]) -> World {
    let job = if suspend { to_suspend(job()) } else { job() };
    let mut world = World::new(job);
    let objects = modes.iter().map(|mode| object(mode.name(), *mode));
    world.rendered = objects.collect::<Arc<[_]>>();
    world.edits(|_| {});
    world
}

/// The same after these events, each of which was reconciled.
fn after(mut world: World, events: &[Event]) -> World {
    let settled = |world: &World| settle(world, (0, None), false).unwrap();
    world = settled(&world);
    for event in events {
        world.happens(*event);
        world = settled(&world);
    }
    world
}

fn scenario(name: &'static str, depth: usize, world: World, events: &[&[Event]]) -> Scenario {
    Scenario {
        name,
        depth,
        world,
        events: events.concat(),
        faults: true,
        sabotage: None,
    }
}

/// A TrainJob that expires, and one with a deadline.
fn that_end() -> [Scenario; 2] {
    let mut expires = world(false, &[WithJobSet]);
    expires.expires = true;
    let mut deadline = world(false, &[]);
    deadline.job.desired.deadline = Some(5_000);
    deadline.job.created = now();
    let events = [JobSetExpires, Suspends, Resumes];
    let times = [TimePasses, Suspends, Resumes, Fails];
    [
        scenario("expires", 3, expires, &[&events, &RUNS, &WATCH]),
        scenario("deadline", 3, deadline, &[&times, &RUNS, &WATCH]),
    ]
}

/// A TrainJob that two controllers reconcile.
fn of_two() -> Scenario {
    let mut two = world(true, &[WithJobSet]);
    two.two = true;
    let events = [
        Suspends,
        Resumes,
        Admits(1),
        Edits(1),
        JobSetActs,
        Completes,
    ];
    let watches = [
        WatchOfJobFallsBehind(1),
        WatchOfJobTells(1),
        WatchOfJobSetFallsBehind(1),
        WatchOfJobSetTells(1),
    ];
    scenario("two", 2, two, &[&events, &watches])
}

/// Returns what is explored.
pub(super) fn scenarios() -> Vec<Scenario> {
    let queue = [
        Suspends,
        Resumes,
        Admits(1),
        Admits(2),
        Edits(1),
        Edits(0),
        EditsForNewJobSets(2),
    ];
    let watched = [Suspends, Resumes, Admits(1), Edits(1)];
    let admits = [Suspends, Admits(1), Admits(2)];
    let breaks = [
        SnapshotIsDeleted,
        SnapshotBreaks,
        RuntimeIsDeleted,
        RenderingIsPossible,
    ];
    let runs = [Fails, JobSetRestarts, Suspends, Resumes];
    let ends = [IsDeleted, IsGone, IsCollected, Suspends];
    let gang = || world(true, &[Once, WhileSuspended]);
    let mut preempted = after(gang(), &[Admits(1), Suspends]);
    preempted.happens(Admits(2));
    let mut unrendered = preempted.clone();
    unrendered.happens(RenderingIsRefused);
    let running = after(world(false, &[Live, Once]), &[]);
    let mut all = vec![
        scenario("queue", 2, gang(), &[&queue, &RUNS]),
        scenario(
            "preempted",
            2,
            preempted,
            &[&admits, &RUNS, &WATCH, &WATCH_OF_JOBS],
        ),
        scenario("unrendered", 2, unrendered, &[&breaks, &RUNS]),
        scenario(
            "watches",
            2,
            world(true, &[WithJobSet]),
            &[&watched, &RUNS, &WATCH, &WATCH_OF_JOBS],
        ),
        scenario("runs", 3, world(false, &[Live]), &[&runs, &RUNS]),
        scenario(
            "deletion",
            3,
            world(false, &[WithJobSet]),
            &[&ends, &RUNS, &WATCH, &WATCH_OF_JOBS],
        ),
        scenario("others", 2, world(false, &[Live, Once]), &[&OTHERS, &RUNS]),
        scenario("interrupted", 2, running, &[&OTHERS, &RUNS, &WATCH]),
        scenario(
            "administrator",
            2,
            world(true, &[WithJobSet, Live]),
            &[&ADMINISTRATORS, &RUNS],
        ),
        of_two(),
    ];
    all.extend(that_end());
    all
}

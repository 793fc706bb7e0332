//! The TrainJobs that are explored, each with what can happen to it.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{
    super::{
        job, object, to_suspend,
        world::{Event, World},
    },
    search::Scenario,
};

/// A TrainJob that is to be suspended or to run, with an object of each of these modes.
fn world(suspend: bool, modes: &[ApplyMode]) -> World {
    let job = if suspend { to_suspend(job()) } else { job() };
    let mut world = World::new(job);
    let objects = modes.iter().map(|mode| object(mode.name(), *mode));
    world.rendered = objects.collect::<Arc<[_]>>();
    world.edits(|_| {});
    world
}

fn scenario(name: &'static str, world: World, events: &[Event]) -> Scenario {
    Scenario {
        name,
        world,
        events: events.to_vec(),
        faults: true,
        sabotage: None,
    }
}

/// What happens to every TrainJob that runs.
const RUNS: [Event; 3] = [Event::JobSetActs, Event::Completes, Event::Restarts(0)];

/// What watches do.
const WATCHES: [Event; 5] = [
    Event::WatchOfJobFallsBehind(0),
    Event::WatchOfJobTells(0),
    Event::WatchOfJobSetFallsBehind(0),
    Event::WatchOfJobSetTells(0),
    Event::Lists(0),
];

pub(super) fn scenarios() -> Vec<Scenario> {
    use ApplyMode::{Live, Once, WhileSuspended, WithJobSet};
    use Event::*;

    let queue = [
        Suspends,
        Resumes,
        Admits(1),
        Admits(2),
        Edits(1),
        Edits(0),
        EditsForNewJobSets(2),
    ];
    let restarts = [Fails, JobSetRestarts, Suspends, Resumes];
    let mut expiring = world(false, &[WithJobSet]);
    expiring.expires = true;
    let mut limited = world(false, &[]);
    limited.job.desired.deadline = Some(5_000);
    limited.job.created = super::super::now();
    let others = [
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
    let administrator = [
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
    let mut all = vec![
        scenario(
            "queue",
            world(true, &[Once, WhileSuspended]),
            &[&queue[..], &RUNS].concat(),
        ),
        scenario(
            "watches",
            world(true, &[WithJobSet]),
            &[
                &[Suspends, Resumes, Admits(1), Edits(1)][..],
                &RUNS,
                &WATCHES,
            ]
            .concat(),
        ),
        scenario(
            "runs",
            world(false, &[Live]),
            &[&restarts[..], &RUNS].concat(),
        ),
        scenario(
            "expires",
            expiring,
            &[
                &[JobSetExpires, Suspends, Resumes][..],
                &RUNS,
                &WATCHES[2..],
            ]
            .concat(),
        ),
        scenario(
            "deadline",
            limited,
            &[
                &[TimePasses, Suspends, Resumes, Fails][..],
                &RUNS,
                &WATCHES[2..],
            ]
            .concat(),
        ),
        scenario(
            "deletion",
            world(false, &[WithJobSet]),
            &[
                &[IsDeleted, IsGone, IsCollected, Suspends][..],
                &RUNS,
                &WATCHES,
            ]
            .concat(),
        ),
        scenario(
            "others",
            world(false, &[Live, Once]),
            &[&others[..], &RUNS].concat(),
        ),
        scenario(
            "administrator",
            world(true, &[WithJobSet, Live]),
            &[&administrator[..], &RUNS].concat(),
        ),
    ];
    let mut two = scenario(
        "two",
        world(true, &[WithJobSet]),
        &[
            Suspends,
            Resumes,
            Admits(1),
            Edits(1),
            JobSetActs,
            Completes,
            WatchOfJobFallsBehind(1),
            WatchOfJobTells(1),
            WatchOfJobSetFallsBehind(1),
            WatchOfJobSetTells(1),
        ],
    );
    two.world.two = true;
    all.push(two);
    all
}

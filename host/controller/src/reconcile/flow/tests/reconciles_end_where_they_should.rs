//! After any events in a simulated cluster, reconciles end, make no forbidden call ([`World`] checks this), and reach the desired state once
//! there are no more events. Any call may fail, and the controller may be killed before any.

use proptest::prelude::*;
use trainyard_model::object::ApplyMode;

use super::{
    Fault, job, object,
    world::{SimObject, SimSnapshot, World},
};
use crate::reconcile::{ReconcileOutcome, facts::OldJob, status};

/// An event between reconciles.
#[derive(Clone, Debug)]
enum Event {
    /// The user suspends or unsuspends it.
    Suspend(bool),
    /// The user changes something that it is rendered from, or changes it back.
    Edit(u64),
    /// The user or an admission changes the placement of its pods.
    Place(u8),
    /// JobSet reports running pods, with the current placement.
    PodsRun,
    /// JobSet reports its end.
    Completes,
    /// Another client deletes the JobSet.
    JobSetIsDeleted,
    /// Another client unsuspends the JobSet.
    JobSetIsUnsuspended,
    /// Another client deletes the snapshot, makes it unreadable, or takes ownership of it.
    SnapshotIsDeleted,
    SnapshotBreaks,
    SnapshotIsTaken,
    /// An object is deleted, or changes its owner.
    ObjectIsDeleted(usize),
    ObjectIsTaken(usize),
    /// The controller restarts.
    Restart,
    /// A looked-up object changes.
    Outdated,
    /// The store is outdated.
    Stale,
    /// The watch of JobSets falls behind, or catches up.
    Watch(bool),
    /// The answer to an apply of the JobSet in the next reconcile is lost.
    LostAnswer,
    /// JobSet rejects the next change.
    Immutable,
    /// A call of the next reconcile fails.
    Fault(usize, Fault),
    /// The controller is killed in the next reconcile.
    Killed(usize),
    /// Renderings fail or succeed from now on.
    Rendering(Option<Fault>),
    /// The runtime is created or deleted.
    Runtime(bool),
    /// The plugins are replaced.
    Plugins(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        Just(Fault::Conflict),
        Just(Fault::Refused),
        Just(Fault::Invalid),
        Just(Fault::Fails),
    ];
    let rendering = prop_oneof![
        Just(None),
        Just(Some(Fault::Input)),
        Just(Some(Fault::Plugins)),
        Just(Some(Fault::Pinned)),
        Just(Some(Fault::Fails)),
    ];
    prop_oneof![
        4 => any::<bool>().prop_map(Event::Suspend),
        2 => (0..3_u64).prop_map(Event::Edit),
        2 => (0..3_u8).prop_map(Event::Place),
        3 => Just(Event::PodsRun),
        1 => Just(Event::Completes),
        1 => Just(Event::JobSetIsDeleted),
        1 => Just(Event::JobSetIsUnsuspended),
        1 => Just(Event::SnapshotIsDeleted),
        1 => Just(Event::SnapshotBreaks),
        1 => Just(Event::SnapshotIsTaken),
        1 => (0..4_usize).prop_map(Event::ObjectIsDeleted),
        1 => (0..4_usize).prop_map(Event::ObjectIsTaken),
        1 => Just(Event::Restart),
        1 => Just(Event::Outdated),
        1 => Just(Event::Stale),
        1 => any::<bool>().prop_map(Event::Watch),
        2 => Just(Event::LostAnswer),
        1 => Just(Event::Immutable),
        3 => (0..16_usize, fault).prop_map(|(at, fault)| Event::Fault(at, fault)),
        1 => (0..16_usize).prop_map(Event::Killed),
        1 => rendering.prop_map(Event::Rendering),
        1 => any::<bool>().prop_map(Event::Runtime),
        3 => (0..8_u8).prop_map(Event::Plugins),
    ]
}

fn modes() -> impl Strategy<Value = Vec<ApplyMode>> {
    proptest::sample::subsequence(ApplyMode::ALL.to_vec(), 0..=4)
}

fn world(modes: &[ApplyMode], needs: usize, suspend: bool) -> World {
    let mut job = job();
    job.desired.suspend = suspend;
    let mut world = World::new(job);
    world.needs = needs;
    let objects = modes.iter().map(|mode| object(mode.name(), *mode));
    world.rendered = objects.collect();
    world
}

fn happens(world: &mut World, event: &Event) {
    let next = world.next_version();
    match event {
        Event::Suspend(suspend) => world.job.desired.suspend = *suspend,
        Event::Edit(number) => {
            world.job.fingerprint = 1 + number * 10 + u64::from(world.placement);
        }
        Event::Place(placement) => {
            world.job.fingerprint -= u64::from(world.placement);
            world.job.fingerprint += u64::from(*placement);
            world.placement = *placement;
        }
        Event::PodsRun => {
            if let Some(found) = world.job_set.as_mut().filter(|it| it.ours && !it.suspended) {
                (found.active, found.has_run, found.version) = (true, true, next);
                let name = "node-0".into();
                let uid = Some("uid".into());
                world.jobs = vec![OldJob {
                    name,
                    uid,
                    deleting: false,
                }];
            }
        }
        Event::Completes => {
            if let Some(found) = world.job_set.as_mut().filter(|it| it.active) {
                (found.active, found.completed, found.version) = (false, true, next);
            }
        }
        Event::JobSetIsDeleted => world.delete_job_set_now(true),
        Event::JobSetIsUnsuspended => {
            if let Some(found) = world.job_set.as_mut().filter(|it| it.ours) {
                (found.suspended, found.has_run, found.version) = (false, true, next);
            }
        }
        Event::SnapshotIsDeleted => world.snapshot = None,
        Event::SnapshotBreaks | Event::SnapshotIsTaken => {
            if let Some(snapshot) = &mut world.snapshot {
                snapshot.version = next;
                snapshot.broken |= matches!(event, Event::SnapshotBreaks);
                snapshot.ours &= matches!(event, Event::SnapshotBreaks);
            }
        }
        Event::ObjectIsDeleted(at) | Event::ObjectIsTaken(at) => {
            let Some(object) = world.rendered.get(*at).cloned() else {
                return;
            };
            world.objects.remove(&object);
            if matches!(event, Event::ObjectIsTaken(_)) {
                let it = SimObject {
                    ours: false,
                    version: next,
                    content: 0,
                };
                world.objects.insert(object, it);
            }
        }
        Event::Restart => world.restart(),
        Event::Outdated => world.outdated = true,
        Event::Stale => world.stale = true,
        Event::Watch(false) => world.behind = world.behind.take().or(Some(world.job_set.clone())),
        Event::Watch(true) => world.behind = None,
        Event::LostAnswer => world.lost = true,
        Event::Immutable => world.mutable = false,
        Event::Fault(at, fault) => drop(world.faults.insert(*at, *fault)),
        Event::Killed(at) => world.killed_at = Some(*at),
        Event::Rendering(fault) => world.rendering = *fault,
        Event::Runtime(exists) => world.runtime = *exists,
        Event::Plugins(number) => world.plugins = *number,
    }
}

/// Reconciles until nothing changes and no temporary failure is left.
fn quiet(world: &mut World) -> ReconcileOutcome {
    for _ in 0..12 {
        // Deleted Jobs are recreated with the placement of their template, and pods of a suspended JobSet end.
        if let Some(found) = world.job_set.as_mut().filter(|it| it.suspended) {
            found.active = false;
        }
        let before = (world.version(), world.job.status.clone());
        let ended = world.reconcile().unwrap();
        if before == (world.version(), world.job.status.clone()) {
            return ended;
        }
    }
    panic!("changes never end: {world:#?}");
}

/// Removes everything that keeps a TrainJob from the desired state.
fn mend(world: &mut World) {
    world.faults.clear();
    world.killed_at = None;
    (world.rendering, world.runtime, world.stale) = (None, true, false);
    (world.behind, world.lost) = (None, false);
    world.objects.retain(|_, it| it.ours);
    if world
        .snapshot
        .as_ref()
        .is_some_and(|it| !it.ours || it.broken)
    {
        world.snapshot = None;
    }
    // The error about a snapshot that nothing vouches for says so.
    let has_run = status::has_run(&world.job.status);
    let is_unproven = |it: &SimSnapshot| match (&world.job_set, &world.deleted_job_set) {
        // A warning says that it is left as it is.
        (Some(found), _) if found.suspended => false,
        // Another client has unsuspended it when the snapshot for its update was written already.
        (Some(found), _) => found.vouches_for != Some(it.content()),
        (None, Some(deleted)) => (has_run || it.started) && deleted.snapshot != Some(it.content()),
        (None, None) => it.started && !it.is_of(world),
    };
    if world.snapshot.as_ref().is_some_and(is_unproven) {
        world.snapshot = None;
    }
}

proptest! {
    #[test]
    fn a_train_job_gets_to_where_it_should_be(
        modes in modes(),
        needs in 0..3_usize,
        suspend in any::<bool>(),
        events in prop::collection::vec((event(), any::<bool>()), 0..24),
    ) {
        let mut world = world(&modes, needs, suspend);
        for (event, reconciled) in events {
            happens(&mut world, &event);
            if reconciled {
                world.reconcile();
            }
        }
        mend(&mut world);
        let ended = quiet(&mut world);
        if status::end(&world.job.status).is_some() {
            return Ok(());
        }
        if let Some(error) = ended.error {
            // Beside running pods, objects cannot be recreated without the snapshot, and keys cannot be recreated at all.
            let keys = object(ApplyMode::Once.name(), ApplyMode::Once);
            let keys = world.rendered.contains(&keys) && !world.objects.contains_key(&keys);
            let runs = world.job_set.as_ref().is_some_and(|found| !found.suspended);
            prop_assert!(runs && (keys || world.snapshot.is_none()), "{error:?} in {world:#?}");
            return Ok(());
        }
        let found = world.job_set.as_ref();
        let has = found.map(|found| found.suspended);
        prop_assert_eq!(has, Some(world.job.desired.suspend), "{:#?}", world);
        // If it has never run, it is as the current plugins render it.
        let is_pinned = world.snapshot.as_ref().is_none_or(|it| it.started);
        let noted = found.filter(|found| found.suspended && !found.has_run && !is_pinned);
        if noted.is_some_and(|found| found.inputs.is_some()) && !world.hidden {
            prop_assert!(world.is_as_rendered(), "{world:#?}");
        }
    }
}

#[test]
fn new_train_jobs_get_their_objects_once_in_a_safe_order() {
    let mut world = world(&ApplyMode::ALL, 2, false);
    let ended = quiet(&mut world);
    assert!(ended.error.is_none());
    let found = world.job_set.as_ref().unwrap();
    assert!(found.has_run && found.started);
    assert_eq!(world.objects.len(), 4);
}

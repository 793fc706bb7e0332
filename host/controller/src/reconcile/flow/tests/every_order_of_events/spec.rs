//! Where a TrainJob has to be once nothing else happens: the placement, the contents and the status that its spec says, derived without the
//! code that reconciles.

use trainyard_model::object::ApplyMode;

use super::super::world::{
    Answer, Choice, Choices, Event, OTHER_CONTENT, Sabotage, Schedule, SimSnapshot, World,
    content_of,
};
use crate::reconcile::{ReconcileOutcome, outcome::Report, status};

/// The most rounds of reconciles until nothing changes any more.
const MOST_ROUNDS: usize = 24;

/// Every call is answered, and nothing else happens.
pub(super) struct Calm;

impl Schedule for Calm {
    fn next(&mut self, _: &World, _: Choices<'_>) -> Choice {
        Choice::Answer(Answer::Given)
    }
}

/// Reconciles fairly until nothing changes. JobSet and the garbage collector do what they have to do, and what failed before is tried again.
/// Missing objects beside a running JobSet are noticed if it has changed since.
///
/// # Errors
/// The guarantee that does not hold.
pub(super) fn settle(
    world: &World,
    (leader, sabotage): (usize, Option<Sabotage>),
    is_noticed: bool,
) -> Result<World, String> {
    let mut world = world.clone();
    for who in 0..2 {
        while world.can(Event::WatchOfJobTells(who)) {
            world.happens(Event::WatchOfJobTells(who));
        }
        while world.can(Event::WatchOfJobSetTells(who)) {
            world.happens(Event::WatchOfJobSetTells(who));
        }
        // The annotation may be written again.
        world.controllers[who].annotated = None;
    }
    world.renumber();
    for _ in 0..MOST_ROUNDS {
        let before = world.key();
        for event in [Event::IsCollected, Event::JobSetActs] {
            if world.can(event) {
                world.happens(event);
            }
        }
        let outcome = world.run(leader, sabotage, &mut Calm).unwrap();
        world.controllers[leader].annotated = None;
        if let Some(broken) = &world.broken {
            return Err(broken.clone());
        }
        world.renumber();
        if world.key() == before {
            return check(&world, leader, &outcome, is_noticed).map(|()| world);
        }
    }
    Err("reconciles come to an end: they change something again and again".to_owned())
}

/// Removes everything that keeps a TrainJob from where it should be.
pub(super) fn mend(world: &mut World) {
    for event in [
        Event::RuntimeIsCreated,
        Event::RenderingIsPossible,
        Event::KindsAreServed,
        Event::AdmissionAllows,
    ] {
        if world.can(event) {
            world.happens(event);
        }
    }
    let job_set = world.job_set.as_ref();
    if job_set.is_some_and(|found| !found.ours || found.deleting.is_some()) {
        world.delete_job_set_now();
    }
    world.objects.retain(|_, it| it.ours);
    // Objects are not watched, but checked whenever the JobSet has changed.
    let next = world.next_version();
    if let Some(found) = &mut world.job_set {
        found.version = next;
    }
    world.snapshot.take_if(|it| !it.ours || it.broken);
    // The error about a snapshot that nothing vouches for says so.
    let has_run = status::has_run(&world.job.status);
    let is_of_now = |it: &SimSnapshot| {
        it.fingerprint == content_of(&world.job, 0) && it.odd_plan == (world.plugins % 2 == 1)
    };
    let deleted = world.controllers[0].deleted.clone();
    let is_unproven = |it: &SimSnapshot| match (&world.job_set, deleted) {
        // A warning says that it is left as it is.
        (Some(found), _) if found.suspended => false,
        // Another client has unsuspended it when the snapshot for its update was written already.
        (Some(found), _) => found.vouches_for != Some(it.content()),
        (None, Some(deleted)) => (has_run || it.started) && deleted.snapshot != Some(it.content()),
        (None, None) => it.started && !is_of_now(it),
    };
    if world.snapshot.as_ref().is_some_and(is_unproven) {
        world.snapshot = None;
    }
}

/// Whether something keeps the TrainJob from where it should be.
fn is_kept(world: &World) -> bool {
    let is_foreign = world.objects.values().any(|it| !it.ours);
    let is_lost = world
        .snapshot
        .as_ref()
        .is_some_and(|it| !it.ours || it.broken);
    let job_set = world.job_set.as_ref();
    let is_taken = job_set.is_some_and(|found| !found.ours || found.deleting.is_some());
    let is_refused = !world.runtime || world.rendering.is_some() || !world.served || world.refuses;
    is_foreign || is_lost || is_taken || is_refused
}

/// Compares a cluster in which nothing happens any more with the spec of its TrainJob.
fn check(
    world: &World,
    leader: usize,
    outcome: &ReconcileOutcome,
    is_noticed: bool,
) -> Result<(), String> {
    if world.gone {
        let has_any = world.job_set.as_ref().is_some_and(|it| it.ours)
            || world.snapshot.as_ref().is_some_and(|it| it.ours)
            || world.objects.values().any(|it| it.ours);
        return hold(
            !has_any,
            "nothing is created for a TrainJob that is gone: it was",
        );
    }
    check_end(world, leader)?;
    if status::end(&world.job.status).is_some() {
        return Ok(());
    }
    check_suspension(world)?;
    if world.job.deleting || is_kept(world) {
        return Ok(());
    }
    if let Some(error) = &outcome.error {
        let keys = world.rendered.iter().find(|it| it.apply == ApplyMode::Once);
        let lost_keys = keys.is_some_and(|keys| !world.objects.contains_key(keys));
        // Beside running pods, objects cannot be recreated without the snapshot, and keys cannot be recreated at all.
        let runs = world.job_set.as_ref().is_some_and(|found| !found.suspended);
        let is_known = runs && (lost_keys || world.snapshot.is_none());
        return hold(
            is_known,
            &format!("a TrainJob gets to where it should be: {error}"),
        );
    }
    check_contents(world, is_noticed)?;
    let is_shown = outcome
        .reports
        .iter()
        .any(|it| matches!(it, Report::Error(_)));
    let is_outdated = world.job.error.is_some() && !is_shown;
    hold(
        !is_outdated,
        "the annotation shows an error until a reconcile succeeds: it is left",
    )
}

fn hold(holds: bool, guarantee: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(guarantee.to_owned())
    }
}

/// The end of the TrainJob is that of its JobSet.
fn check_end(world: &World, leader: usize) -> Result<(), String> {
    let end = status::end(&world.job.status);
    let deleted = world.controllers[leader].deleted.as_ref();
    let is_known = deleted.is_some_and(|last| last.end.is_some());
    hold(
        !world.ended
            || is_kept(world) && !is_known
            || end.is_some()
            || world.has_forgotten_end(leader),
        "an end is shown: the JobSet has ended, and the status does not say so",
    )?;
    let Some(end) = end else {
        return Ok(());
    };
    let found = world.job_set.as_ref().filter(|found| found.ours);
    let is_overdue = end.reason == status::DEADLINE_EXCEEDED;
    hold(
        !(is_overdue && found.is_some_and(|found| found.deleting.is_none())),
        "a TrainJob that is overdue has no JobSet: it is left",
    )?;
    let unlike = found.is_some_and(|found| {
        found.completed && end.type_ == status::FAILED
            || found.failed && end.type_ == status::COMPLETE
    });
    hold(
        !unlike,
        "an end is that of the JobSet: the status has another",
    )
}

/// The JobSet runs or is suspended as the TrainJob says, and the status shows it.
fn check_suspension(world: &World) -> Result<(), String> {
    let suspend = world.job.desired.suspend;
    let found = world.job_set.as_ref().filter(|found| found.ours);
    let runs = found.is_some_and(|found| found.runs());
    let is_kept = world.refuses || found.is_some_and(|found| found.deleting.is_some());
    hold(
        !(suspend && runs && !is_kept),
        "a suspended TrainJob has no pods: its JobSet runs",
    )?;
    let condition = world.job.status.conditions.iter();
    let shown = condition.clone().find(|it| it.type_ == status::SUSPENDED);
    let is_shown = match (suspend && !runs, shown) {
        (true, shown) => shown.is_some_and(|it| it.status == "True"),
        (false, shown) => shown.is_none_or(|it| it.status == "False"),
    };
    // It shows whether the JobSet that was deleted was suspended.
    let is_missing = found.is_none() && self::is_kept(world);
    hold(
        is_shown || is_missing,
        "the status shows whether the TrainJob is suspended: it shows the other",
    )?;
    let counts = world
        .state()
        .map(|found| found.jobs)
        .filter(|_| found.is_some());
    let are_shown = counts.is_none_or(|counts| *counts == world.job.status.jobs_status);
    hold(
        are_shown,
        "the status has the counts of the JobSet: it has others",
    )
}

/// The JobSet and the objects beside it have the placement and the contents that the TrainJob says.
fn check_contents(world: &World, is_noticed: bool) -> Result<(), String> {
    let Some(found) = &world.job_set else {
        return Err("a TrainJob has a JobSet: it has none".to_owned());
    };
    let suspend = world.job.desired.suspend;
    hold(
        found.suspended == suspend || found.has_ended(),
        "a TrainJob that is to run has a JobSet that runs: it is suspended",
    )?;
    if !suspend {
        hold(
            found.placement == world.placement || world.placed_late,
            "pods have the placement of the last admission: they have another",
        )?;
    }
    let now = content_of(&world.job, world.plugins);
    for object in world.rendered.iter() {
        let Some(it) = world.objects.get(object) else {
            // After a restart, only the snapshot lists them.
            if suspend || !is_noticed || world.snapshot.is_none() {
                continue;
            }
            return Err(format!("a JobSet has its objects: {object} is missing"));
        };
        let follows = match object.apply {
            ApplyMode::Live => true,
            ApplyMode::WhileSuspended => suspend,
            _ => false,
        };
        // It does not follow the plugins once it has started.
        let is_current = it.content % OTHER_CONTENT == now % OTHER_CONTENT;
        hold(
            !follows || is_current || world.hidden,
            &format!("an object follows the TrainJob as its mode says: {object} does not"),
        )?;
    }
    // If it has never run, it is as it is rendered now. Of two controllers, one may write over what the other has written, which does not know
    // until the JobSet is unsuspended and applied again.
    let is_pinned = world.snapshot.as_ref().is_none_or(|it| it.started);
    let is_new = found.suspended && !found.has_run && !is_pinned && found.inputs.is_some();
    hold(
        !is_new || world.hidden || world.two || world.is_as_rendered(),
        "a queued TrainJob follows its spec: its JobSet, snapshot or objects are outdated",
    )
}

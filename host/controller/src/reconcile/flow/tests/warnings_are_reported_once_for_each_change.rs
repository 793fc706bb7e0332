//! The warnings of a rendering are reported when its JobSet was created, updated or resumed. A reconcile that fails reports them once it
//! succeeds.

use super::{job, to_suspend, world::World};
use crate::reconcile::outcome::Report;

const NONE: [&str; 0] = [];

fn world(suspend: bool) -> World {
    let job = if suspend { to_suspend(job()) } else { job() };
    let mut world = World::new(job);
    world.warnings = vec!["a".to_owned()];
    world
}

fn set_suspend(world: &mut World, suspend: bool) {
    world.job.desired.suspend = suspend;
    world.job.fingerprint += 1;
}

fn reconcile(world: &mut World) -> Vec<String> {
    let reports = world.reconcile().unwrap().reports.into_iter();
    let warnings = reports.filter_map(|report| match report {
        Report::Rendering(warning) => Some(warning),
        _ => None,
    });
    warnings.collect()
}

#[test]
fn created_and_updated_job_sets_have_warnings() {
    let mut world = world(true);
    assert_eq!(reconcile(&mut world), ["a"], "it is created");
    assert_eq!(reconcile(&mut world), NONE, "nothing has changed");
    set_suspend(&mut world, false);
    assert_eq!(reconcile(&mut world), ["a"], "it is updated and starts");
    assert_eq!(reconcile(&mut world), NONE, "it runs");
}

#[test]
fn resumed_job_sets_have_warnings() {
    let mut world = world(false);
    assert_eq!(reconcile(&mut world), ["a"], "it is created");
    set_suspend(&mut world, true);
    assert_eq!(reconcile(&mut world), NONE, "it is suspended");
    assert_eq!(reconcile(&mut world), NONE, "it stays suspended");
    set_suspend(&mut world, false);
    world.add_old_job(false);
    assert_eq!(reconcile(&mut world), NONE, "a Job has to be deleted first");
    assert_eq!(reconcile(&mut world), ["a"], "it is resumed");
    assert_eq!(reconcile(&mut world), NONE, "it runs");
}

//! Writes that were interrupted, or whose answers were lost, are repeated by the next reconcile, also if the plugins or the TrainJob are again as
//! they were before.

use super::*;
use crate::reconcile::flow::tests::world::{OTHER_RENDERING, World};

/// Plugins that give the TrainJob another plan, and render it in the same way.
const OTHER_PLAN: u8 = 1;

fn with_object(job: JobFacts) -> World {
    let mut world = World::new(job);
    world.rendered = [object("map", ApplyMode::WithJobSet)].into();
    world
}

/// A TrainJob whose suspended JobSet is up to date.
fn queued() -> World {
    let mut world = with_object(to_suspend(job()));
    succeeds(&mut world);
    assert!(world.is_as_rendered());
    world
}

fn succeeds(world: &mut World) {
    let error = world.reconcile().unwrap().error;
    assert!(error.is_none(), "{error:?}");
}

fn fails(world: &mut World) {
    let error = world.reconcile().unwrap().error;
    assert!(error.is_some(), "{world:#?}");
}

/// The JobSet cannot be applied with these plugins, after the snapshot and the objects were written.
fn is_not_applied(world: &mut World, plugins: u8) {
    world.plugins = plugins;
    world.fail("apply JobSet over", Fault::Refused);
    fails(world);
    world.succeed();
}

#[test]
fn a_job_set_whose_creation_was_not_answered_is_not_written_over() {
    for plugins in [0, OTHER_PLAN, OTHER_RENDERING, OTHER_RENDERING + 1] {
        let mut world = with_object(job());
        world.lost = true;
        fails(&mut world);
        let (snapshot, objects) = (world.snapshot.clone().unwrap(), world.objects.clone());
        world.plugins = plugins;
        fails(&mut world);
        assert_eq!(
            world.snapshot.as_ref().unwrap().content(),
            snapshot.content()
        );
        assert_eq!(world.objects, objects);
        world.controllers[0].job_sets = None;
        succeeds(&mut world);
        let job_set = world.job_set.unwrap();
        assert_eq!(job_set.vouches_for, Some(snapshot.content()));
        assert!(job_set.has_run);
    }
}

#[test]
fn a_job_set_vouches_for_its_snapshot_after_an_update_was_interrupted() {
    for restarts in [false, true] {
        let mut world = queued();
        is_not_applied(&mut world, OTHER_PLAN);
        assert!(!world.is_as_rendered());
        if restarts {
            world.restart(0);
        }
        succeeds(&mut world);
        assert!(world.is_as_rendered(), "{restarts}: {world:#?}");
    }
}

#[test]
fn an_interrupted_update_is_undone_if_the_plugins_are_as_before() {
    for plugins in [OTHER_PLAN, OTHER_RENDERING, OTHER_RENDERING + 1] {
        for restarts in [false, true] {
            let mut world = queued();
            is_not_applied(&mut world, plugins);
            world.plugins = 0;
            if restarts {
                // Only the annotation about the error shows it.
                world.restart(0);
            }
            succeeds(&mut world);
            assert!(world.is_as_rendered(), "{plugins}, {restarts}: {world:#?}");
        }
    }
}

#[test]
fn an_interrupted_update_is_undone_if_the_train_job_is_as_before() {
    let mut world = queued();
    world.job.fingerprint = 2;
    is_not_applied(&mut world, 0);
    world.job.fingerprint = 1;
    succeeds(&mut world);
    assert!(world.is_as_rendered(), "{world:#?}");
}

#[test]
fn an_update_that_was_not_answered_is_undone_if_the_plugins_are_as_before() {
    for plugins in [OTHER_PLAN, OTHER_RENDERING, OTHER_RENDERING + 1] {
        let mut world = queued();
        (world.plugins, world.lost) = (plugins, true);
        fails(&mut world);
        world.plugins = 0;
        succeeds(&mut world);
        world.controllers[0].job_sets = None;
        succeeds(&mut world);
        assert!(world.is_as_rendered(), "{plugins}: {world:#?}");
    }
}

//! A table of all cases, with the calls of each reconcile in their order.

mod ending;
mod running;
mod suspended;
mod without_a_job_set;

use trainyard_model::object::ApplyMode;

use super::{
    Fault, counts, job, object, that_ran, to_suspend,
    world::{SimJobSet, SimObject, SimSnapshot, World},
};
use crate::{
    generation::CommonInputs,
    reconcile::{
        last_reconcile::{AppliedObject, LastReconcile},
        object_ref::ObjectRef,
        outcome::Report,
        start::JobFacts,
    },
    watch::State as _,
};

/// A case: what it is, its cluster, the calls until the outcome of the JobSet is known with the kinds of warnings after them, and the kind of the
/// error.
type Case = (&'static str, World, &'static str, Option<&'static str>);

fn check(cases: Vec<Case>) {
    for (name, mut world, calls, kind) in cases {
        let end = world.reconcile().unwrap();
        let done: Vec<_> = world.done.iter().map(String::as_str).collect();
        let until = done.iter().position(|done| *done == "settle").unwrap();
        let mut expected = done[..until].join(", ");
        for report in &end.reports {
            if let Report::Error(error) = report {
                expected += &format!("; warns of {}", error.kind());
            }
        }
        assert_eq!(expected, calls, "{name}");
        assert_eq!(end.error.map(|error| error.kind()), kind, "{name}");
    }
}

/// A cluster with this TrainJob, changed so.
fn world(job: JobFacts, change: impl FnOnce(&mut World)) -> World {
    let mut world = World::new(job);
    change(&mut world);
    world
}

/// The last reconcile left everything up to date, at this fingerprint of the TrainJob.
fn remembers(world: &mut World, fingerprint: u64, objects: Option<&[ObjectRef]>) {
    world.controllers[0].last = Some(LastReconcile {
        uid: world.job.uid.clone(),
        fingerprint,
        common: CommonInputs::for_tests(0),
        job_set: world.state().map(|found| found.version()),
        objects: objects.map(AppliedObject::unknown),
    });
}

/// An object in the cluster.
fn exists(world: &mut World, object: &ObjectRef, ours: bool) {
    let it = SimObject {
        ours,
        version: 1,
        content: 0,
    };
    world.objects.insert(object.clone(), it);
}

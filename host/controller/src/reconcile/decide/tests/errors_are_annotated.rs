//! An annotation says why a TrainJob can't be reconciled: as soon as it fails, until it succeeds, and without a write in between.

use std::sync::Arc;

use super::{failure, job, now, observed, world::World};
use crate::reconcile::{
    decide::{Decision, Report, decide},
    failure::{Class, Finding, ReconcileFailure},
    observed::{JobFacts, Observed},
    step::{Action, Observe, Reason, Step},
};

/// What is expected of the annotation.
#[derive(Clone, Copy)]
enum Annotation {
    Written(&'static str),
    Removed,
    Unchanged,
}

use Annotation::{Removed, Unchanged, Written};

fn annotated(text: &str) -> JobFacts {
    let mut job = job();
    job.error = Some(text.into());
    job
}

/// A reconcile that has written the status, and whose TrainJob could not be read.
fn failed(job: JobFacts, class: Class) -> Observed {
    let mut o = observed(job, None);
    o.done.begun = true;
    (o.done.settled, o.done.status_written) = (true, true);
    let step = Step::Observe(Observe::TrainJob);
    o.failures.push((step, failure(class)));
    o
}

fn deleting(mut job: JobFacts) -> JobFacts {
    job.deleting = true;
    job
}

fn ended(mut job: JobFacts) -> JobFacts {
    job.wishes.not_supported = Some("no such kind".to_owned());
    job
}

#[test]
fn the_annotation_follows_the_reconcile() {
    let input = "Failed: Input";
    let persists = |mut o: Observed| {
        o.persists = true;
        o
    };
    let with_status = |mut o: Observed| {
        (o.done.settled, o.done.status_written) = (true, true);
        o
    };
    for (name, o, expected) in [
        ("it fails", failed(job(), Class::Input), Written(input)),
        (
            "it fails again",
            failed(annotated(input), Class::Input),
            Unchanged,
        ),
        (
            "it fails otherwise",
            failed(annotated("Failed: Other"), Class::Input),
            Written(input),
        ),
        (
            "it fails for a moment",
            failed(job(), Class::Conflict),
            Unchanged,
        ),
        (
            "it failed, and fails for a moment",
            failed(annotated(input), Class::Conflict),
            Unchanged,
        ),
        (
            "it fails for longer than a moment",
            persists(failed(job(), Class::Conflict)),
            Written("Failed: Conflict"),
        ),
        (
            "it has ended",
            with_status(observed(ended(annotated(input)), None)),
            Removed,
        ),
        (
            "it has ended well",
            with_status(observed(ended(job()), None)),
            Unchanged,
        ),
        (
            "it is deleted",
            with_status(observed(deleting(annotated(input)), None)),
            Unchanged,
        ),
    ] {
        match (decide(&o, now()), expected) {
            (Decision::Next(Step::Act(Action::WriteError(text)), reason), Written(wanted)) => {
                assert_eq!(text.as_deref(), Some(wanted), "{name}");
                assert_eq!(reason, Reason::ErrorOutdated, "{name}");
            }
            (Decision::Next(Step::Act(Action::WriteError(None)), _), Removed)
            | (Decision::Done(_), Unchanged) => {}
            (decision, _) => panic!("{name}: {decision:?}"),
        }
    }
}

#[test]
fn the_error_of_a_train_job_is_reported_even_if_it_can_not_be_annotated() {
    let mut o = failed(job(), Class::Input);
    let write = Action::WriteError(Some(Arc::from("Failed: Input")));
    let refused = failure(Class::Refused);
    o.failures.push((Step::Act(write), refused.clone()));
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("it goes on");
    };
    assert_eq!(end.failure, Some(failure(Class::Input)));
    assert_eq!(end.reports, [Report::NotAnnotated(refused)]);
}

#[test]
fn an_annotation_that_can_not_be_removed_is_a_failure() {
    let mut o = observed(ended(annotated("Failed: Input")), None);
    (o.done.settled, o.done.status_written) = (true, true);
    let refused = failure(Class::Refused);
    let remove = Step::Act(Action::WriteError(None));
    o.failures.push((remove, refused.clone()));
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("it goes on");
    };
    assert_eq!(end.failure, Some(refused));
}

#[test]
fn a_train_job_is_annotated_while_its_runtime_is_missing() {
    let mut world = World::new(job());
    world.runtime = false;
    assert!(world.reconcile().failure.is_some());
    assert_eq!(world.job.error.as_deref(), Some("Failed: Input"));
    assert!(world.job_set.is_none());
    world.runtime = true;
    assert_eq!(world.reconcile().failure, None);
    assert_eq!(world.job.error, None);
    assert!(world.job_set.is_some());
}

#[test]
fn what_was_found_out_is_annotated_as_an_error_is() {
    let lost = ReconcileFailure::Found(Finding::EndIsUnknown).summary("bert");
    assert_eq!(&*lost.text, "EndUnknown: JobSet bert");
    assert!(!lost.passing);
    let stale = ReconcileFailure::Found(Finding::StaleJobSet).summary("bert");
    assert!(stale.passing);
}

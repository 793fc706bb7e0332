//! An annotation shows why a TrainJob cannot be reconciled, from its first failure until it succeeds, with few writes in between.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;

use super::{failure, job, now, observed, world::World};
use crate::reconcile::{
    decide::{Decision, Report, decide},
    error::AnnotationTiming,
    failure::{Class, Finding, ReconcileFailure},
    observed::{AnnotationWrite, JobFacts, Observed},
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
    o.effects.begun = true;
    (o.effects.memory_updated, o.effects.status_written) = (true, true);
    let step = Step::Observe(Observe::TrainJob);
    o.failures.push((step, failure(class)));
    o
}

fn deleting(mut job: JobFacts) -> JobFacts {
    job.deleting = true;
    job
}

fn ended(mut job: JobFacts) -> JobFacts {
    job.desired.not_supported = Some("no such kind".to_owned());
    job
}

/// The same with a failure that affects all TrainJobs.
fn cluster_wide(mut o: Observed) -> Observed {
    for (_, failure) in &mut o.failures {
        if let ReconcileFailure::Failed { summary, .. } = failure {
            summary.annotated = AnnotationTiming::Never;
        }
    }
    o
}

#[test]
fn the_annotation_follows_the_reconcile() {
    let input = "Failed: Input";
    let persists = |mut o: Observed| {
        o.persists = true;
        o
    };
    let with_status = |mut o: Observed| {
        (o.effects.memory_updated, o.effects.status_written) = (true, true);
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
            "it fails as all TrainJobs do",
            persists(cluster_wide(failed(job(), Class::Other))),
            Unchanged,
        ),
        (
            "it failed, and fails as all TrainJobs do",
            persists(cluster_wide(failed(annotated(input), Class::Other))),
            Unchanged,
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
fn errors_are_reported_even_if_annotating_fails() {
    let mut o = failed(job(), Class::Input);
    let write = Action::WriteError(Some(Arc::from("Failed: Input")));
    let refused = failure(Class::Refused);
    o.failures.push((Step::Act(write), refused.clone()));
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("the reconcile continues");
    };
    assert_eq!(end.failure, Some(failure(Class::Input)));
    assert_eq!(end.reports, [Report::NotAnnotated(refused)]);
}

#[test]
fn an_annotation_that_can_not_be_removed_fails_no_reconcile() {
    let mut o = observed(ended(annotated("Failed: Input")), None);
    (o.effects.memory_updated, o.effects.status_written) = (true, true);
    let refused = failure(Class::Refused);
    let remove = Step::Act(Action::WriteError(None));
    o.failures.push((remove, refused.clone()));
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("the reconcile continues");
    };
    assert_eq!(end.failure, None);
    assert_eq!(end.reports, [Report::NotAnnotated(refused)]);
    // It is removed later.
    assert_eq!(end.requeue_after, Some(Duration::from_secs(600)));
}

#[test]
fn errors_are_annotated_even_if_writing_the_status_fails() {
    let mut waits = job();
    waits.desired.suspend = true;
    let mut o = failed(waits, Class::Input);
    o.effects.status_written = false;
    let Decision::Next(write, Reason::StatusOutdated) = decide(&o, now()) else {
        panic!("the status is not written");
    };
    o.failures.push((write, failure(Class::Refused)));
    let Decision::Next(step, Reason::ErrorOutdated) = decide(&o, now()) else {
        panic!("it is not annotated");
    };
    let text = Some(Arc::from("Failed: Input"));
    assert_eq!(step, Step::Act(Action::WriteError(text)));
}

/// A write of the annotation so many seconds ago.
fn written(mut o: Observed, text: Option<&str>, seconds: i64, failed: bool) -> Observed {
    o.annotated = Some(AnnotationWrite {
        uid: "job".into(),
        text: text.map(Arc::from),
        at: Timestamp::from_second(now().as_second() - seconds).unwrap(),
        failed,
    });
    o
}

#[test]
fn the_annotation_is_not_written_again_soon() {
    let input = Some("Failed: Input");
    let fails = |text: Option<&str>| failed(text.map_or_else(job, annotated), Class::Input);
    let goes_on = || {
        let mut o = observed(ended(annotated("Failed: Input")), None);
        (o.effects.memory_updated, o.effects.status_written) = (true, true);
        o
    };
    let other = Some("Failed: Other");
    for (name, o, is_written, again) in [
        (
            "another text",
            written(fails(other), other, 59, false),
            false,
            None,
        ),
        (
            "another text later",
            written(fails(other), other, 60, false),
            true,
            None,
        ),
        (
            "another writer",
            written(fails(other), input, 59, false),
            false,
            None,
        ),
        (
            "another writer later",
            written(fails(other), input, 60, false),
            true,
            None,
        ),
        (
            "it fails again",
            written(fails(None), None, 0, false),
            true,
            None,
        ),
        (
            "it continues",
            written(goes_on(), input, 0, false),
            true,
            None,
        ),
        (
            "it was removed",
            written(goes_on(), None, 50, false),
            false,
            Some(10),
        ),
        (
            "refused",
            written(fails(None), input, 599, true),
            false,
            None,
        ),
        (
            "refused long ago",
            written(fails(None), input, 600, true),
            true,
            None,
        ),
        (
            "another text refused",
            written(fails(None), other, 59, true),
            false,
            None,
        ),
        (
            "another text refused before",
            written(fails(None), other, 60, true),
            true,
            None,
        ),
        (
            "removal refused",
            written(goes_on(), None, 599, true),
            false,
            Some(1),
        ),
        (
            "removal refused long ago",
            written(goes_on(), None, 600, true),
            true,
            None,
        ),
        (
            "a clock was set back",
            written(fails(other), other, -1, false),
            true,
            None,
        ),
    ] {
        match decide(&o, now()) {
            Decision::Next(Step::Act(Action::WriteError(_)), _) => assert!(is_written, "{name}"),
            Decision::Done(end) => {
                assert!(!is_written, "{name}");
                assert_eq!(end.requeue_after, again.map(Duration::from_secs), "{name}");
                assert_eq!(end.reports, [], "{name}");
            }
            decision @ Decision::Next(..) => panic!("{name}: {decision:?}"),
        }
    }
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
    let lost = ReconcileFailure::Blocked(Finding::EndIsUnknown).summary("bert");
    assert_eq!(
        &*lost.text,
        "EndUnknown: JobSet `bert` has run and was deleted, and it is not known whether it had ended; it is not recreated; recreate the TrainJob to run it again"
    );
    assert_eq!(lost.annotated, AnnotationTiming::AtOnce);
    let stale = ReconcileFailure::Blocked(Finding::StaleJobSet).summary("bert");
    assert_eq!(stale.annotated, AnnotationTiming::OncePersistent);
}

//! An annotation shows why a TrainJob cannot be reconciled, from its first error until a reconcile succeeds, with few writes in between.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;

use super::{Fault, error, job, now, world::World};
use crate::reconcile::{
    error::{AnnotationTiming, ErrorSummary, ReconcileError},
    last_reconcile::AnnotationWrite,
    outcome::Report,
    start::JobFacts,
};

fn text(fault: Fault) -> Arc<str> {
    ErrorSummary::of(&error(fault)).text
}

fn annotated(fault: Fault) -> JobFacts {
    let mut job = job();
    job.error = Some((*text(fault)).into());
    job
}

/// A TrainJob that cannot be read.
fn fails(job: JobFacts, fault: Fault) -> World {
    let mut world = World::new(job);
    world.fail("read TrainJob", fault);
    world
}

fn ended(mut job: JobFacts) -> World {
    job.desired.not_supported = Some("no such kind".to_owned());
    World::new(job)
}

fn persists(mut world: World) -> World {
    world.persists = true;
    world
}

/// Reconciles, and returns whether the annotation was written or removed.
fn writes(world: &mut World) -> Option<&'static str> {
    world.reconcile();
    let mut done = world.done.iter();
    let write = done.find(|done| done.ends_with(" error"))?;
    Some(if write == "write error" {
        "written"
    } else {
        "removed"
    })
}

#[test]
fn the_annotation_follows_the_reconcile() {
    let mut deleting = annotated(Fault::Input);
    deleting.deleting = true;
    for (name, mut world, expected) in [
        ("it fails", fails(job(), Fault::Input), Some("written")),
        (
            "it fails again",
            fails(annotated(Fault::Input), Fault::Input),
            None,
        ),
        (
            "it fails otherwise",
            fails(annotated(Fault::Fails), Fault::Input),
            Some("written"),
        ),
        ("it fails for a moment", fails(job(), Fault::Conflict), None),
        (
            "it failed, and fails for a moment",
            fails(annotated(Fault::Input), Fault::Conflict),
            None,
        ),
        (
            "it fails for longer than a moment",
            persists(fails(job(), Fault::Conflict)),
            Some("written"),
        ),
        (
            "it fails as all TrainJobs do",
            persists(fails(job(), Fault::Unavailable)),
            None,
        ),
        (
            "it failed, and fails as all TrainJobs do",
            persists(fails(annotated(Fault::Input), Fault::Unavailable)),
            None,
        ),
        (
            "it has ended",
            ended(annotated(Fault::Input)),
            Some("removed"),
        ),
        ("it has ended well", ended(job()), None),
        ("it is deleted", World::new(deleting), None),
    ] {
        let before = world.job.error.clone();
        assert_eq!(writes(&mut world), expected, "{name}");
        match expected {
            Some("written") => assert_ne!(world.job.error, before, "{name}"),
            Some(_) => assert_eq!(world.job.error, None, "{name}"),
            None => assert_eq!(world.job.error, before, "{name}"),
        }
    }
}

#[test]
fn errors_are_reported_even_if_annotating_fails() {
    let mut world = fails(job(), Fault::Input);
    world.fail("write error", Fault::Refused);
    let end = world.reconcile().unwrap();
    assert_eq!(end.error.unwrap().kind(), "no_runtime");
    let [Report::NotAnnotated(refused)] = &end.reports[..] else {
        panic!("{:?}", end.reports);
    };
    assert_eq!(refused.status(), Some(403));
}

#[test]
fn an_annotation_that_can_not_be_removed_fails_no_reconcile() {
    let mut world = ended(annotated(Fault::Input));
    world.fail("remove error", Fault::Refused);
    let end = world.reconcile().unwrap();
    assert!(end.error.is_none());
    assert!(matches!(end.reports[..], [Report::NotAnnotated(_)]));
    // It is removed later.
    assert_eq!(end.requeue_after, Some(Duration::from_secs(600)));
}

#[test]
fn an_annotation_that_a_busy_api_server_did_not_write_is_written_after_a_minute() {
    for fault in [Fault::Fails, Fault::Unavailable, Fault::Conflict] {
        let mut world = fails(job(), Fault::Input);
        world.fail("write error", fault);
        assert_eq!(writes(&mut world), Some("written"), "{fault:?}");
        world.second += 59;
        assert_eq!(writes(&mut world), None, "{fault:?}");
        world.second += 1;
        assert_eq!(writes(&mut world), Some("written"), "{fault:?}");
    }

    let mut world = ended(annotated(Fault::Input));
    world.fail("remove error", Fault::Fails);
    let end = world.reconcile().unwrap();
    assert_eq!(end.requeue_after, Some(Duration::from_secs(60)));
}

#[test]
fn the_annotation_is_not_written_again_soon() {
    let (input, other) = (Fault::Input, Fault::Fails);
    let after = |mut world: World, last: Option<Fault>, seconds: i64, refused: bool| {
        world.controllers[0].annotated = Some(AnnotationWrite {
            uid: "job".into(),
            text: last.map(text),
            at: Timestamp::from_second(now().as_second() - seconds).unwrap(),
            refused,
        });
        world
    };
    let fails_otherwise = || fails(annotated(other), input);
    let fails_first = || fails(job(), input);
    let goes_on = || ended(annotated(input));
    for (name, mut world, is_written, again) in [
        (
            "another text",
            after(fails_otherwise(), Some(other), 59, false),
            false,
            None,
        ),
        (
            "another text later",
            after(fails_otherwise(), Some(other), 60, false),
            true,
            None,
        ),
        (
            "another writer",
            after(fails_otherwise(), Some(input), 59, false),
            false,
            None,
        ),
        (
            "another writer later",
            after(fails_otherwise(), Some(input), 60, false),
            true,
            None,
        ),
        (
            "it fails again",
            after(fails_first(), None, 0, false),
            true,
            None,
        ),
        (
            "it continues",
            after(goes_on(), Some(input), 0, false),
            true,
            None,
        ),
        (
            "it was removed",
            after(goes_on(), None, 50, false),
            false,
            Some(10),
        ),
        (
            "refused",
            after(fails_first(), Some(input), 599, true),
            false,
            None,
        ),
        (
            "refused long ago",
            after(fails_first(), Some(input), 600, true),
            true,
            None,
        ),
        (
            "another text refused",
            after(fails_first(), Some(other), 59, true),
            false,
            None,
        ),
        (
            "another text refused before",
            after(fails_first(), Some(other), 60, true),
            true,
            None,
        ),
        (
            "removal refused",
            after(goes_on(), None, 599, true),
            false,
            Some(1),
        ),
        (
            "removal refused long ago",
            after(goes_on(), None, 600, true),
            true,
            None,
        ),
        (
            "a clock was set back",
            after(fails_otherwise(), Some(other), -1, false),
            true,
            None,
        ),
    ] {
        let end = world.reconcile().unwrap();
        let writes = world.done.iter().any(|done| done.ends_with(" error"));
        assert_eq!(writes, is_written, "{name}");
        assert_eq!(end.requeue_after, again.map(Duration::from_secs), "{name}");
        assert!(end.reports.is_empty(), "{name}");
    }
}

#[test]
fn a_train_job_is_annotated_while_its_runtime_is_missing() {
    let mut world = World::new(job());
    world.runtime = false;
    assert!(world.reconcile().unwrap().error.is_some());
    assert_eq!(world.job.error.as_deref(), Some(&*text(Fault::Input)));
    assert!(world.job_set.is_none());
    world.runtime = true;
    assert!(world.reconcile().unwrap().error.is_none());
    assert_eq!(world.job.error, None);
    assert!(world.job_set.is_some());
}

#[test]
fn findings_are_annotated_as_errors_are() {
    let name = "bert".to_owned();
    let unknown = ErrorSummary::of(&ReconcileError::EndIsUnknown { name });
    assert_eq!(
        &*unknown.text,
        "EndUnknown: JobSet `bert` has run and was deleted, and is not recreated, because it may have ended before; recreate the TrainJob to run it again"
    );
    assert_eq!(unknown.annotated, AnnotationTiming::AtOnce);
    let stale = ErrorSummary::of(&ReconcileError::stale_job_set("bert"));
    assert_eq!(stale.annotated, AnnotationTiming::OncePersistent);
}

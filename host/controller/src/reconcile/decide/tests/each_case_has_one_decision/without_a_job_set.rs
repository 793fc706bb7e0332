//! A TrainJob whose JobSet was not created yet, or was deleted.

use super::*;

#[test]
fn before_anything_is_made() {
    let forget = |interests, forget_last, forget_deleted_job_set| {
        let settle = MemoryUpdate {
            interests,
            forget_last,
            forget_deleted_job_set,
        };
        Act(Action::UpdateMemory(settle), Reason::Ends)
    };
    let mut theirs = job();
    theirs.desired.managed_by_us = false;
    let unreadable = failure(Class::Other);
    let stored = |job: StoredJob| with(observed(super::job(), None), |o| o.job = job);
    let mut deleting = job();
    deleting.deleting = true;
    let mut leaving = job_set(false);
    (leaving.deleting, leaving.finalizers) = (true, "example.com/keep".into());
    let kept = |is_recreated| Finding::JobSetIsDeleted {
        finalizers: "example.com/keep".into(),
        is_recreated,
    };
    let text = |is_recreated| kept(is_recreated).error("job").to_string();
    assert!(text(true).contains("is recreated") && !text(false).contains("is recreated"));
    let mut ended = job();
    ended.desired.not_supported = Some("no such kind".to_owned());
    let foreign = |owner: Option<Owner>| {
        with(observed(job(), None), |o| {
            o.initial.job_set = StoredJobSet::Foreign;
            o.observations.owner = owner;
        })
    };
    for (name, o, expected) in [
        (
            "it is gone",
            stored(StoredJob::Missing),
            forget(InterestChange::Forget, true, true),
        ),
        (
            "it cannot be decoded",
            stored(StoredJob::Unreadable(unreadable.clone())),
            forget(InterestChange::Keep, true, false),
        ),
        (
            "it cannot be decoded, which is an error",
            stored(StoredJob::Unreadable(unreadable.clone())),
            Fails(unreadable),
        ),
        (
            "another controller manages it",
            observed(theirs, None),
            forget(InterestChange::Forget, false, false),
        ),
        (
            "it has ended",
            observed(ended, None),
            forget(InterestChange::Forget, true, false),
        ),
        (
            "it is deleted",
            observed(deleting.clone(), Some(job_set(false))),
            forget(InterestChange::Forget, false, false),
        ),
        (
            "it is deleted and suspended, and its JobSet runs",
            observed(to_suspend(deleting.clone()), Some(job_set(false))),
            Asks(Observe::SnapshotMarks, Reason::ToSuspend),
        ),
        (
            "its JobSet is deleted",
            observed(job(), Some(leaving.clone())),
            Fails(ReconcileFailure::Blocked(kept(true))),
        ),
        (
            "it is deleted with its JobSet",
            observed(deleting, Some(leaving)),
            Fails(ReconcileFailure::Blocked(kept(false))),
        ),
        (
            "another owner has its JobSet",
            foreign(None),
            Asks(Observe::JobSetOwner, Reason::ForeignJobSet),
        ),
        (
            "another owner has its JobSet, as is known",
            foreign(Some(Owner::Foreign(failure(Class::Foreign)))),
            Fails(failure(Class::Foreign)),
        ),
        (
            "an earlier TrainJob has its JobSet",
            foreign(Some(Owner::OursOrGone)),
            Fails(ReconcileFailure::Blocked(Finding::StaleJobSet)),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn without_a_job_set() {
    let comes = |change: fn(&mut Observed)| with(begun(job(), None), change);
    let ran = |change: fn(&mut Observed)| with(begun(that_ran(), None), change);
    let lost = with(observed(job(), None), |o| {
        o.unreadable_job_set = Some(failure(Class::Other));
        o.effects.error_written = true;
    });
    let decision = decide(&lost, now());
    assert!(matches!(decision, Decision::Done(end) if end.failure.is_some()));
    let create = |recreated| Action::ApplyJobSet {
        over: None,
        held: false,
        recreated,
    };
    let because = Reason::NoJobSet;
    let once = object("once", ApplyMode::Once);
    for (name, o, expected) in [
        (
            "nothing is known",
            observed(job(), None),
            Act(Action::Begin, because),
        ),
        (
            "it has begun",
            with(observed(job(), None), |o| o.effects.begun = true),
            Asks(Observe::TrainJob, because),
        ),
        (
            "it had a JobSet",
            with(begun(that_ran(), None), |o| {
                o.observations.live_train_job = None
            }),
            Asks(Observe::LiveTrainJob, because),
        ),
        ("it comes", comes(|_| {}), Asks(Observe::Runtime, because)),
        (
            "its runtime is known",
            comes(|o| o.observations.runtime = Some(())),
            Asks(Observe::Rendering(FRESH), because),
        ),
        (
            "plugins ask for objects",
            comes(|o| {
                o.observations.runtime = Some(());
                o.observations.renderings.push((FRESH, Rendering::Needs));
            }),
            Asks(Observe::Lookups(FRESH), because),
        ),
        (
            "it is rendered",
            comes(|o| {
                o.observations.runtime = Some(());
                let saved = false;
                renders(
                    o,
                    FRESH,
                    RenderedFacts {
                        saved,
                        ..rendered(&[])
                    },
                );
            }),
            Act(Action::CreateSnapshot(FRESH), because),
        ),
        (
            "it has no runtime, and may have a snapshot",
            comes(failed_runtime),
            Asks(Observe::Snapshot, because),
        ),
        (
            "it has no runtime and no snapshot",
            comes(|o| {
                failed_runtime(o);
                o.observations.snapshot = Some(None);
            }),
            Fails(failure(Class::Input)),
        ),
        (
            "its snapshot is in the cluster",
            comes(|o| {
                o.observations.runtime = Some(());
                renders(o, FRESH, rendered(&[]));
            }),
            Act(create(false), because),
        ),
        (
            "it has an object",
            with(comes(|o| o.observations.runtime = Some(())), |o| {
                renders(o, FRESH, rendered(std::slice::from_ref(&once)));
            }),
            Asks(Observe::Object(once.clone()), because),
        ),
        (
            "its JobSet has run",
            ran(|_| {}),
            Asks(Observe::Snapshot, because),
        ),
        (
            "its JobSet has run, and went unseen",
            ran(|o| o.observations.snapshot = Some(None)),
            Asks(Observe::Absence, Reason::EndUnknown),
        ),
        (
            "its JobSet has run, and is really gone",
            ran(|o| (o.observations.snapshot, o.observations.absence) = (Some(None), Some(()))),
            Act(Action::NoteUnseenEnd, Reason::EndUnknown),
        ),
        (
            "its JobSet has run, and was seen to be deleted",
            ran(|o| {
                o.initial.deleted_job_set = Some(Arc::new(super::job_set(false)));
                o.observations.snapshot = Some(Some(snapshot()));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark {
                        started: true,
                        recreate: Some(true),
                    },
                    at: version("snapshot"),
                },
                Reason::JobSetDeleted,
            ),
        ),
        (
            "its JobSet was deleted, and the snapshot says so",
            ran(|o| {
                o.initial.deleted_job_set = Some(Arc::new(super::job_set(false)));
                let recreate = true;
                o.observations.snapshot = Some(Some(SnapshotFacts {
                    recreate,
                    ..started_snapshot()
                }));
                renders(o, PINNED, rendered(&[]));
            }),
            Act(create(true), because),
        ),
        (
            "there is a JobSet again",
            ran(|o| {
                o.initial.deleted_job_set = Some(Arc::new(super::job_set(false)));
                o.current.job_set = StoredJobSet::Ours(Arc::new(super::job_set(false)));
                let recreate = true;
                o.observations.snapshot = Some(Some(SnapshotFacts {
                    recreate,
                    ..started_snapshot()
                }));
                renders(o, PINNED, rendered(&[]));
                o.effects.job_set_written = true;
            }),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark::RECREATED,
                    at: version("snapshot"),
                },
                Reason::JobSetRecreated,
            ),
        ),
    ] {
        check(name, o, &expected);
    }
}

/// Its JobSet was deleted before the controller started, or was never created.
#[test]
fn nothing_vouches_for_its_snapshot() {
    let because = Reason::NoJobSet;
    let untrusted = |facts: SnapshotFacts| SnapshotFacts {
        trusted: false,
        ..facts
    };
    let has = |facts: SnapshotFacts, saved: Option<bool>| {
        with(begun(that_ran(), None), |o| {
            let basis = RuntimeSource::Runtime.basis(facts.started);
            let recreate = true;
            o.observations.snapshot = Some(Some(untrusted(SnapshotFacts { recreate, ..facts })));
            if let Some(saved) = saved {
                o.observations.runtime = Some(());
                let facts = RenderedFacts {
                    saved,
                    ..rendered(&[])
                };
                renders(o, basis, facts);
            }
        })
    };
    let create = Action::ApplyJobSet {
        over: None,
        held: false,
        recreated: true,
    };
    for (name, o, expected) in [
        (
            "it is rendered from the current runtime",
            has(started_snapshot(), None),
            Asks(Observe::Runtime, because),
        ),
        (
            "the current runtime gives the same snapshot",
            has(started_snapshot(), Some(true)),
            Act(create, because),
        ),
        (
            "the current runtime gives another one, and it is immutable",
            has(started_snapshot(), Some(false)),
            Fails(ReconcileFailure::Blocked(Finding::UnprovenSnapshot)),
        ),
        (
            "it cannot be rendered",
            with(has(started_snapshot(), None), failed_runtime),
            Fails(failure(Class::Input)),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn objects_beside_a_new_job_set() {
    let create = |object: &ObjectRef| Action::CreateObject(object.clone());
    let reads = |object: &ObjectRef| Observe::Object(object.clone());
    let ours = || Some(ObjectState::Ours(None));
    let contested = |object: &ObjectRef| (Step::Act(create(object)), failure(Class::Conflict));
    let [plain, once, live] = [ApplyMode::WithJobSet, ApplyMode::Once, ApplyMode::Live]
        .map(|mode| object(mode.name(), mode));
    let because = Reason::NoJobSet;
    let apply = |object: &ObjectRef, force| {
        let object = object.clone();
        Act(Action::ApplyObject { object, force }, because)
    };
    let fails = |class| Fails(failure(class));
    let apply_job_set = Action::ApplyJobSet {
        over: None,
        held: false,
        recreated: false,
    };
    let missing = || Some(ObjectState::Missing);
    for (name, object, state, failures, expected) in [
        (
            "not looked at",
            &plain,
            None,
            vec![],
            Asks(reads(&plain), because),
        ),
        ("missing", &plain, missing(), vec![], apply(&plain, false)),
        ("ours", &live, ours(), vec![], apply(&live, true)),
        (
            "another owner's",
            &live,
            Some(ObjectState::Unusable(failure(Class::Foreign))),
            vec![],
            fails(Class::Foreign),
        ),
        (
            "made once",
            &once,
            None,
            vec![],
            Asks(reads(&once), because),
        ),
        (
            "made once, and missing",
            &once,
            missing(),
            vec![],
            Act(create(&once), because),
        ),
        (
            "made once, and ours",
            &once,
            ours(),
            vec![],
            Act(apply_job_set.clone(), because),
        ),
        (
            "exists already",
            &once,
            None,
            vec![contested(&once)],
            Asks(reads(&once), because),
        ),
        (
            "exists already and is ours",
            &once,
            ours(),
            vec![contested(&once)],
            Act(apply_job_set, because),
        ),
        (
            "came and went",
            &once,
            missing(),
            vec![contested(&once)],
            fails(Class::Conflict),
        ),
        (
            "refused for good",
            &once,
            missing(),
            vec![(Step::Act(create(&once)), failure(Class::Invalid))],
            fails(Class::Invalid),
        ),
    ] {
        let o = with(begun(job(), None), |o| {
            o.observations.runtime = Some(());
            let mut facts = rendered(std::slice::from_ref(object));
            facts.objects[0].state = state;
            renders(o, FRESH, facts);
            o.failures = failures;
        });
        check(name, o, &expected);
    }
}

//! What is decided in each case: the first step that comes next, and why.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use trainyard_model::object::ApplyMode;

use super::{counts, failure, job, job_set, now, object, observed};
use crate::reconcile::decide::{Decision, Report, decide};
use crate::reconcile::failure::{Cause, Class, Failure, Finding};
use crate::reconcile::inputs::Inputs;
use crate::reconcile::object_ref::ObjectRef;
use crate::reconcile::observed::{
    AppliedObject, JobFacts, LastReconcile, LiveJobSet, Look, Observed, OldJob, Owner, Placement,
    RenderedFacts, RenderedObjectFacts, Rendering, SnapshotFacts, SnapshotMarks, StoredJob,
    StoredJobSet, Version,
};
use crate::reconcile::step::{
    Action, Basis, Interests, Mark, Observe, Reason, Settle, Source, Step, Wanted,
};
use crate::watch::{JobSetState, State as _};

/// What is expected of a case.
enum Expected {
    Observe(Observe, Reason),
    Act(Action, Reason),
    /// The reconcile settles what is in memory, and that is all.
    Ends,
    /// It settles what is in memory, and then fails.
    Fails(Failure),
}

use Expected::{Act, Ends, Fails, Observe as Asks};

fn version(name: &str) -> Version {
    Version {
        uid: Some(name.into()),
        version: Some("7".into()),
    }
}

fn snapshot() -> SnapshotFacts {
    SnapshotFacts {
        at: version("snapshot"),
        was_started: false,
        started: false,
        recreate: false,
        has_plan: true,
        objects: Arc::default(),
    }
}

fn started_snapshot() -> SnapshotFacts {
    SnapshotFacts {
        was_started: true,
        started: true,
        ..snapshot()
    }
}

fn marks() -> SnapshotMarks {
    SnapshotMarks {
        at: version("snapshot"),
        foreign: None,
        started: false,
        recreate: false,
    }
}

fn live() -> LiveJobSet {
    LiveJobSet {
        at: version("live"),
        started: false,
        active: false,
        inputs: None,
        removed: false,
    }
}

fn rendered(objects: &[ObjectRef]) -> RenderedFacts {
    let objects = objects.iter().map(|object| RenderedObjectFacts {
        object: object.clone(),
        content: 1,
        has_keys: false,
        look: None,
        written: None,
    });
    RenderedFacts {
        saved: true,
        inputs: "inputs".into(),
        expires: false,
        objects: objects.collect(),
    }
}

/// A TrainJob with a status that says that its JobSet has run.
fn that_ran() -> JobFacts {
    let mut job = job();
    job.status.jobs_status = counts(1).into();
    job
}

fn to_suspend(mut job: JobFacts) -> JobFacts {
    job.wishes.suspend = true;
    job
}

/// A suspended JobSet that says what it was rendered from.
fn waiting() -> JobSetState {
    let mut job_set = job_set(true);
    job_set.inputs = Some("inputs".into());
    job_set
}

/// A reconcile in which the TrainJob was read.
fn begun(job: JobFacts, found: Option<JobSetState>) -> Observed {
    let mut o = observed(job, found);
    (o.done.begun, o.asked.train_job) = (true, Some(()));
    o.asked.live_train_job = Some(());
    o
}

fn with(mut o: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut o);
    o
}

fn failed(step: Step, class: Class) -> impl FnOnce(&mut Observed) {
    move |o| o.failures.push((step, failure(class)))
}

fn renders(o: &mut Observed, basis: Basis, facts: RenderedFacts) {
    o.asked.renderings.push((basis, Rendering::Rendered(facts)));
}

const FRESH: Basis = Source::Runtime.basis(false);
const PINNED: Basis = Source::Snapshot.started();
const KEPT: Basis = Source::Snapshot.basis(false);

fn check(name: &str, mut o: Observed, expected: &Expected) {
    let decision = decide(&o, now());
    let next = |step: Step, reason| Decision::Next(step, reason);
    match expected {
        Asks(what, reason) => {
            assert_eq!(
                decision,
                next(Step::Observe(what.clone()), *reason),
                "{name}"
            );
        }
        Act(action, reason) => {
            assert_eq!(decision, next(Step::Act(action.clone()), *reason), "{name}");
        }
        Ends | Fails(_) => {
            let Decision::Next(Step::Act(Action::Settle(_)), Reason::Ends) = decision else {
                panic!("{name}: {decision:?}");
            };
            o.done.settled = true;
            o.done.status_written = true;
            let Decision::Done(end) = decide(&o, now()) else {
                panic!("{name}: it does not end");
            };
            let failure = match expected {
                Fails(failure) => Some(failure),
                _ => None,
            };
            assert_eq!(end.failure.as_ref(), failure, "{name}");
        }
    }
}

fn at(found: &JobSetState, fingerprint: u64, objects: Option<&[ObjectRef]>) -> LastReconcile {
    LastReconcile {
        uid: "job".into(),
        fingerprint,
        job_set: Some(found.version()),
        objects: objects.map(AppliedObject::unknown),
    }
}

#[test]
fn before_anything_is_made() {
    let forget = |interests, forget_last, forget_departed| {
        let settle = Settle {
            interests,
            forget_last,
            forget_departed,
        };
        Act(Action::Settle(settle), Reason::Ends)
    };
    let mut theirs = job();
    theirs.wishes.managed_by_us = false;
    let unreadable = failure(Class::Other);
    let stored = |job: StoredJob| with(observed(super::job(), None), |o| o.job = job);
    let mut deleting = job();
    deleting.deleting = true;
    let mut leaving = job_set(false);
    leaving.deleting = true;
    let mut ended = job();
    ended.wishes.not_supported = Some("no such kind".to_owned());
    let foreign = |owner: Option<Owner>| {
        with(observed(job(), None), |o| {
            o.initial.job_set = StoredJobSet::Foreign;
            o.asked.owner = owner;
        })
    };
    for (name, o, expected) in [
        (
            "it is gone",
            stored(StoredJob::Missing),
            forget(Interests::Forget, true, true),
        ),
        (
            "it can't be decoded",
            stored(StoredJob::Unreadable(unreadable.clone())),
            forget(Interests::Stay, true, false),
        ),
        (
            "it can't be decoded, which is an error",
            stored(StoredJob::Unreadable(unreadable.clone())),
            Fails(unreadable),
        ),
        (
            "another controller manages it",
            observed(theirs, None),
            forget(Interests::Forget, false, false),
        ),
        (
            "it has ended",
            observed(ended, None),
            forget(Interests::Forget, true, false),
        ),
        (
            "it is deleted",
            observed(deleting.clone(), Some(job_set(false))),
            forget(Interests::Forget, false, false),
        ),
        (
            "it is deleted and suspended, and its JobSet runs",
            observed(to_suspend(deleting), Some(job_set(false))),
            Asks(Observe::SnapshotMarks, Reason::ToSuspend),
        ),
        (
            "its JobSet is deleted",
            observed(job(), Some(leaving)),
            Ends,
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
            Fails(Failure::Found(Finding::StaleJobSet)),
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
            with(observed(job(), None), |o| o.done.begun = true),
            Asks(Observe::TrainJob, because),
        ),
        (
            "it had a JobSet",
            with(begun(that_ran(), None), |o| o.asked.live_train_job = None),
            Asks(Observe::LiveTrainJob, because),
        ),
        ("it comes", comes(|_| {}), Asks(Observe::Runtime, because)),
        (
            "its runtime is known",
            comes(|o| o.asked.runtime = Some(())),
            Asks(Observe::Rendering(FRESH), because),
        ),
        (
            "plugins ask for objects",
            comes(|o| {
                o.asked.runtime = Some(());
                o.asked.renderings.push((FRESH, Rendering::Needs));
            }),
            Asks(Observe::Lookups(FRESH), because),
        ),
        (
            "it is rendered",
            comes(|o| {
                o.asked.runtime = Some(());
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
                o.asked.snapshot = Some(None);
            }),
            Fails(failure(Class::Input)),
        ),
        (
            "its snapshot is in the cluster",
            comes(|o| {
                o.asked.runtime = Some(());
                renders(o, FRESH, rendered(&[]));
            }),
            Act(create(false), because),
        ),
        (
            "it has an object",
            with(comes(|o| o.asked.runtime = Some(())), |o| {
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
            ran(|o| o.asked.snapshot = Some(None)),
            Asks(Observe::Absence, Reason::EndUnknown),
        ),
        (
            "its JobSet has run, and is really gone",
            ran(|o| (o.asked.snapshot, o.asked.absence) = (Some(None), Some(()))),
            Act(Action::NoteUnseenEnd, Reason::EndUnknown),
        ),
        (
            "its JobSet has run, and was seen to be deleted",
            ran(|o| {
                o.initial.departed = Some(Arc::new(super::job_set(false)));
                o.asked.snapshot = Some(Some(snapshot()));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: Mark {
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
                o.initial.departed = Some(Arc::new(super::job_set(false)));
                let recreate = true;
                o.asked.snapshot = Some(Some(SnapshotFacts {
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
                o.initial.departed = Some(Arc::new(super::job_set(false)));
                o.current.job_set = StoredJobSet::Ours(Arc::new(super::job_set(false)));
                let recreate = true;
                o.asked.snapshot = Some(Some(SnapshotFacts {
                    recreate,
                    ..started_snapshot()
                }));
                renders(o, PINNED, rendered(&[]));
                o.done.job_set_written = true;
            }),
            Act(
                Action::MarkSnapshot {
                    mark: Mark::RECREATED,
                    at: version("snapshot"),
                },
                Reason::JobSetRecreated,
            ),
        ),
    ] {
        check(name, o, &expected);
    }
}

fn failed_runtime(o: &mut Observed) {
    failed(Step::Observe(Observe::Runtime), Class::Input)(o);
}

#[test]
fn objects_beside_a_new_job_set() {
    let create = |object: &ObjectRef| Action::CreateObject(object.clone());
    let looks = |object: &ObjectRef| Observe::Object(object.clone());
    let ours = || Some(Look::Ours(None));
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
    let missing = || Some(Look::Missing);
    for (name, object, look, failures, expected) in [
        (
            "not looked at",
            &plain,
            None,
            vec![],
            Asks(looks(&plain), because),
        ),
        ("missing", &plain, missing(), vec![], apply(&plain, false)),
        ("ours", &live, ours(), vec![], apply(&live, true)),
        (
            "another owner's",
            &live,
            Some(Look::Unusable(failure(Class::Foreign))),
            vec![],
            fails(Class::Foreign),
        ),
        (
            "made once",
            &once,
            None,
            vec![],
            Asks(looks(&once), because),
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
            Asks(looks(&once), because),
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
            o.asked.runtime = Some(());
            let mut facts = rendered(std::slice::from_ref(object));
            facts.objects[0].look = look;
            renders(o, FRESH, facts);
            o.failures = failures;
        });
        check(name, o, &expected);
    }
}

#[test]
fn a_suspended_job_set_that_has_never_run() {
    let waits = |change: fn(&mut Observed)| with(begun(to_suspend(job()), Some(waiting())), change);
    let goes = |change: fn(&mut Observed)| {
        with(begun(job(), Some(waiting())), |o| {
            o.asked.snapshot = Some(Some(snapshot()));
            renders(o, KEPT, rendered(&[]));
            o.asked.live = Some(live());
            change(o);
        })
    };
    let because = Reason::NeverRun;
    let uid = || waiting().uid;
    let over = |held| Action::ApplyJobSet {
        over: Some(version("live")),
        held,
        recreated: false,
    };
    let known = |inputs: &'static str| {
        with(observed(to_suspend(job()), Some(waiting())), |o| {
            o.asked.inputs = Some(Inputs::for_tests(inputs));
        })
    };
    let snapshot_fails = |class| failed(Step::Observe(Observe::Snapshot), class);
    let immutable =
        |held| move |o: &mut Observed| failed(Step::Act(over(held)), Class::Immutable)(o);
    let places = |o: &mut Observed, loses| {
        o.asked.placement = Some(Placement {
            loses,
            moves: false,
            noted: false,
        });
    };
    for (name, o, expected) in [
        (
            "it says what it was rendered from",
            observed(to_suspend(job()), Some(waiting())),
            Asks(Observe::Inputs, because),
        ),
        (
            "it was rendered from the same",
            known("inputs"),
            Act(Action::Remember(at(&waiting(), 1, None)), because),
        ),
        (
            "it was rendered from something else",
            known("others"),
            Act(Action::Begin, because),
        ),
        (
            "the last reconcile left it so",
            with(known("others"), |o| o.last = Some(at(&waiting(), 1, None))),
            Ends,
        ),
        (
            "the TrainJob has changed since",
            with(known("inputs"), |o| o.last = Some(at(&waiting(), 2, None))),
            Act(Action::Begin, because),
        ),
        (
            "something that was looked up has changed",
            with(known("inputs"), |o| o.outdated = true),
            Act(Action::Begin, because),
        ),
        (
            "it is read",
            waits(|_| {}),
            Asks(Observe::Snapshot, because),
        ),
        (
            "its snapshot can't be used",
            with(waits(|_| {}), snapshot_fails(Class::Snapshot)),
            Asks(Observe::SnapshotMarks, because),
        ),
        (
            "its snapshot can't be used, and may be replaced",
            with(
                waits(|o| o.asked.snapshot_marks = Some(Some(marks()))),
                snapshot_fails(Class::Snapshot),
            ),
            Asks(Observe::Runtime, because),
        ),
        (
            "another owner has its snapshot",
            with(waits(|_| {}), snapshot_fails(Class::Foreign)),
            Fails(failure(Class::Foreign)),
        ),
        (
            "the snapshot still says that there is no JobSet",
            waits(|o| {
                let recreate = true;
                o.asked.snapshot = Some(Some(SnapshotFacts {
                    recreate,
                    ..snapshot()
                }));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: Mark::RECREATED,
                    at: version("snapshot"),
                },
                Reason::JobSetRecreated,
            ),
        ),
        (
            "it has a snapshot",
            waits(|o| o.asked.snapshot = Some(Some(snapshot()))),
            Asks(Observe::LiveJobSet { uid: uid() }, because),
        ),
        (
            "it is rendered otherwise than its snapshot says",
            goes(|o| {
                o.asked.renderings.clear();
                let saved = false;
                renders(
                    o,
                    KEPT,
                    RenderedFacts {
                        saved,
                        ..rendered(&[])
                    },
                );
            }),
            Act(
                Action::ReplaceSnapshot {
                    basis: KEPT,
                    at: version("snapshot"),
                },
                Reason::SnapshotOutdated,
            ),
        ),
        (
            "someone suspended it that has run",
            goes(|o| {
                let started = true;
                o.asked.live = Some(LiveJobSet { started, ..live() });
            }),
            Act(
                Action::MarkSnapshot {
                    mark: Mark::STARTED,
                    at: version("snapshot"),
                },
                because,
            ),
        ),
        (
            "it is to run",
            goes(|_| {}),
            Asks(Observe::Placement(Wanted::Applied), because),
        ),
        (
            "its Jobs have nothing to lose",
            with(goes(|_| {}), |o| places(o, false)),
            Act(over(false), because),
        ),
        (
            "its Jobs have something to lose",
            with(goes(|_| {}), |o| places(o, true)),
            Act(over(true), because),
        ),
        (
            "it can't change",
            with(with(goes(|_| {}), |o| places(o, false)), immutable(false)),
            Asks(Observe::Creatable { held: false }, Reason::Immutable),
        ),
        (
            "it can't change, and another one could be created",
            with(
                with(goes(|o| o.asked.creatable = Some(())), |o| places(o, false)),
                immutable(false),
            ),
            Act(Action::DeleteJobSet(version("live")), Reason::Immutable),
        ),
        (
            "it can't change while pods of it end",
            with(
                with(
                    goes(|o| {
                        let active = true;
                        o.asked.live = Some(LiveJobSet { active, ..live() });
                    }),
                    |o| places(o, false),
                ),
                immutable(false),
            ),
            Fails(failure(Class::Immutable)),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn a_suspended_job_set_that_has_run() {
    let because = Reason::HasRun;
    let goes = |change: fn(&mut Observed)| {
        with(begun(that_ran(), Some(job_set(true))), |o| {
            o.asked.snapshot = Some(Some(started_snapshot()));
            o.asked.live = Some(live());
            renders(o, PINNED, rendered(&[]));
            change(o);
        })
    };
    fn removed(o: &mut Observed) {
        let removed = true;
        o.asked.live = Some(LiveJobSet { removed, ..live() });
        o.asked.placement = Some(Placement {
            loses: true,
            moves: false,
            noted: true,
        });
    }
    fn old_job(deleting: bool) -> OldJob {
        OldJob {
            name: "node-0".into(),
            uid: Some("uid".into()),
            deleting,
        }
    }
    let stays = AppliedObject::unknown(&[]);
    for (name, o, expected) in [
        (
            "it stays suspended",
            with(begun(to_suspend(that_ran()), Some(job_set(true))), |o| {
                o.asked.snapshot = Some(Some(started_snapshot()));
            }),
            Act(
                Action::Remember(LastReconcile {
                    objects: Some(stays),
                    ..at(&job_set(true), 1, None)
                }),
                because,
            ),
        ),
        (
            "only its status says that it has run",
            with(begun(that_ran(), Some(job_set(true))), |o| {
                o.asked.snapshot = Some(Some(snapshot()));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: Mark::STARTED,
                    at: version("snapshot"),
                },
                because,
            ),
        ),
        (
            "it has no snapshot",
            with(begun(that_ran(), Some(job_set(true))), |o| {
                o.asked.snapshot = Some(None)
            }),
            Asks(Observe::Runtime, because),
        ),
        (
            "it has no snapshot and no runtime",
            with(begun(that_ran(), Some(job_set(true))), |o| {
                o.asked.snapshot = Some(None);
                o.asked.live = Some(live());
                failed_runtime(o);
            }),
            Asks(Observe::Placement(Wanted::Live), because),
        ),
        (
            "it is rendered",
            goes(|_| {}),
            Asks(Observe::Placement(Wanted::Rendered), because),
        ),
        (
            "its plugins are gone",
            with(goes(|o| o.asked.renderings.clear()), |o| {
                failed(
                    Step::Observe(Observe::Rendering(PINNED)),
                    Class::PlanIsPinned,
                )(o);
            }),
            Asks(Observe::Placement(Wanted::Noted), because),
        ),
        (
            "its pods are where they should be",
            goes(|o| {
                o.asked.placement = Some(Placement {
                    loses: false,
                    moves: false,
                    noted: false,
                });
            }),
            Act(Action::Resume(version("live")), because),
        ),
        (
            "its pods are elsewhere",
            goes(|o| {
                o.asked.placement = Some(Placement {
                    loses: true,
                    moves: true,
                    noted: false,
                });
            }),
            Act(Action::Relocate(version("live")), Reason::OldPlacement),
        ),
        (
            "its Jobs may be elsewhere",
            goes(removed),
            Asks(Observe::Jobs, Reason::OldPlacement),
        ),
        (
            "a Job is elsewhere",
            goes(|o| {
                removed(o);
                o.asked.jobs = Some(vec![old_job(false)]);
            }),
            Act(
                Action::DeleteJob {
                    name: "node-0".into(),
                    uid: Some("uid".into()),
                },
                Reason::OldPlacement,
            ),
        ),
        (
            "a Job is deleted",
            goes(|o| {
                removed(o);
                o.asked.jobs = Some(vec![old_job(true)]);
            }),
            Fails(Failure::Found(Finding::JobsHaveOldPlacement)),
        ),
        (
            "Jobs may not be listed",
            with(
                goes(removed),
                failed(Step::Observe(Observe::Jobs), Class::Refused),
            ),
            Act(Action::Resume(version("live")), because),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn a_job_set_that_runs() {
    let keep = ApplyMode::WithJobSet;
    let follows = object("live", ApplyMode::Live);
    let kept = object("kept", keep);
    let runs = || job_set(false);
    let suspend = |change: fn(&mut Observed)| {
        with(
            observed(to_suspend(that_ran()), Some(job_set(false))),
            change,
        )
    };
    let changed = |objects: &[ObjectRef]| {
        let last = at(&runs(), 0, Some(objects));
        with(begun(that_ran(), Some(runs())), |o| o.last = Some(last))
    };
    let looks = |o: &mut Observed, object: &ObjectRef, look: Look| {
        o.asked.listed_objects.push((object.clone(), look));
    };
    let missing = || {
        with(changed(std::slice::from_ref(&kept)), |o| {
            looks(o, &kept, Look::Missing);
        })
    };
    let because = Reason::Running;
    let to = Reason::ToSuspend;
    let uid = || Action::Suspend { uid: runs().uid };
    let lost = |cause| Fails(Failure::Found(Finding::Lost(kept.clone(), cause)));
    for (name, o, expected) in [
        (
            "it is to be suspended",
            suspend(|_| {}),
            Asks(Observe::SnapshotMarks, to),
        ),
        (
            "its snapshot does not say that it has run",
            suspend(|o| o.asked.snapshot_marks = Some(Some(marks()))),
            Act(
                Action::MarkSnapshot {
                    mark: Mark::STARTED,
                    at: version("snapshot"),
                },
                to,
            ),
        ),
        (
            "it has no snapshot",
            suspend(|o| o.asked.snapshot_marks = Some(None)),
            Act(uid(), to),
        ),
        (
            "its snapshot may not be read",
            with(
                suspend(|_| {}),
                failed(Step::Observe(Observe::SnapshotMarks), Class::Refused),
            ),
            Act(uid(), to),
        ),
        (
            "the API server is away",
            with(
                suspend(|_| {}),
                failed(Step::Observe(Observe::SnapshotMarks), Class::Other),
            ),
            Fails(failure(Class::Other)),
        ),
        (
            "the controller has started",
            observed(that_ran(), Some(runs())),
            Act(Action::Remember(at(&runs(), 1, None)), because),
        ),
        (
            "nothing has changed",
            with(observed(that_ran(), Some(runs())), |o| {
                o.last = Some(at(&runs(), 1, None))
            }),
            Ends,
        ),
        (
            "the TrainJob has changed",
            with(observed(that_ran(), Some(runs())), |o| {
                o.last = Some(at(&runs(), 0, None))
            }),
            Asks(Observe::ListedObjects, because),
        ),
        (
            "it has an object",
            changed(std::slice::from_ref(&kept)),
            Asks(Observe::ListedObject(kept.clone()), because),
        ),
        (
            "an object is missing",
            with(missing(), |o| o.asked.live_train_job = None),
            Asks(Observe::LiveTrainJob, because),
        ),
        (
            "an object is missing, and so is the snapshot",
            with(missing(), |o| o.asked.snapshot = Some(None)),
            lost(Cause::NoSnapshot),
        ),
        (
            "an object is missing, and is not rendered any more",
            with(missing(), |o| {
                o.asked.snapshot = Some(Some(started_snapshot()));
                renders(o, PINNED, rendered(&[]));
            }),
            lost(Cause::NotRendered),
        ),
        (
            "an object is missing, and is known to be",
            with(missing(), |o| {
                o.asked.snapshot = Some(Some(started_snapshot()));
                let mut facts = rendered(std::slice::from_ref(&kept));
                facts.objects[0].look = Some(Look::Missing);
                renders(o, PINNED, facts);
            }),
            Act(Action::CreateObject(kept.clone()), because),
        ),
        (
            "keys are missing",
            with(missing(), |o| {
                o.asked.snapshot = Some(Some(started_snapshot()));
                let mut facts = rendered(std::slice::from_ref(&kept));
                facts.objects[0].has_keys = true;
                renders(o, PINNED, facts);
            }),
            Fails(Failure::Found(Finding::KeysLost(kept.clone()))),
        ),
        (
            "a live object may have to change",
            with(changed(std::slice::from_ref(&follows)), |o| {
                looks(o, &follows, Look::Ours(None));
            }),
            Asks(Observe::Snapshot, because),
        ),
        (
            "another owner has an object",
            with(changed(std::slice::from_ref(&kept)), |o| {
                looks(o, &kept, Look::Unusable(failure(Class::Foreign)));
            }),
            Fails(failure(Class::Foreign)),
        ),
    ] {
        check(name, o, &expected);
    }
}

#[test]
fn a_plan_that_is_pinned_leaves_live_objects_as_they_are() {
    let follows = object("live", ApplyMode::Live);
    let runs = job_set(false);
    let last = at(&runs, 0, Some(std::slice::from_ref(&follows)));
    let o = with(begun(that_ran(), Some(runs)), |o| {
        o.last = Some(last);
        o.asked.listed_objects.push((follows, Look::Ours(None)));
        o.asked.snapshot = Some(Some(started_snapshot()));
        failed(
            Step::Observe(Observe::Rendering(PINNED)),
            Class::PlanIsPinned,
        )(o);
        (o.done.remembered, o.done.settled, o.done.status_written) = (true, true, true);
    });
    let Decision::Done(end) = decide(&o, now()) else {
        panic!("it does not end");
    };
    assert_eq!(
        end.reports,
        [Report::NotFollowed(failure(Class::PlanIsPinned))]
    );
}

#[test]
fn the_end_of_a_reconcile() {
    let suspended = || {
        with(observed(to_suspend(job()), Some(job_set(true))), |o| {
            o.last = Some(at(&job_set(true), 1, None));
            o.done.settled = true;
        })
    };
    let Decision::Next(Step::Act(Action::WriteStatus(status)), reason) =
        decide(&suspended(), now())
    else {
        panic!("the status is not written");
    };
    assert_eq!(reason, Reason::StatusOutdated);
    assert!(status.is_true("Suspended").is_some());

    // One that can't be written does not hide what came before.
    let cant = with(
        suspended(),
        failed(Step::Act(Action::WriteStatus(status)), Class::Other),
    );
    let Decision::Done(end) = decide(&cant, now()) else {
        panic!("it does not end");
    };
    assert_eq!(end.failure, Some(failure(Class::Other)));

    let mut late = job();
    late.wishes.deadline = Some(10);
    let overdue = |at: i64| {
        let o = with(observed(late.clone(), Some(job_set(false))), |o| {
            (o.done.settled, o.done.status_written) = (true, true);
            o.last = Some(super::each_case_has_one_decision::at(
                &job_set(false),
                1,
                None,
            ));
        });
        decide(&o, Timestamp::from_second(at).unwrap())
    };
    let Decision::Done(end) = overdue(4) else {
        panic!("it does not end");
    };
    assert_eq!(end.again.map(|again| again.as_secs()), Some(6));
    let delete = Action::DeleteJobSet(Version {
        uid: Some(job_set(false).uid),
        version: None,
    });
    let deleted = Decision::Next(Step::Act(delete), Reason::Overdue);
    assert_eq!(overdue(10), deleted);
}

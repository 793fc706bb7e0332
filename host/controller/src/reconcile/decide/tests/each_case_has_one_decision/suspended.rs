//! A TrainJob whose JobSet is suspended.

use super::*;

#[test]
fn a_suspended_job_set_that_has_never_run() {
    let waits = |change: fn(&mut Observed)| with(begun(to_suspend(job()), Some(waiting())), change);
    let goes = |change: fn(&mut Observed)| {
        with(begun(job(), Some(waiting())), |o| {
            o.observations.snapshot = Some(Some(snapshot()));
            renders(o, KEPT, rendered(&[]));
            o.observations.live = Some(live());
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
            o.observations.inputs = Some(Inputs::for_tests(inputs));
        })
    };
    let snapshot_fails = |class| failed(Step::Observe(Observe::Snapshot), class);
    let immutable =
        |held| move |o: &mut Observed| failed(Step::Act(over(held)), Class::Immutable)(o);
    let places = |o: &mut Observed, loses| {
        o.observations.placement = Some(Placement {
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
            "its snapshot cannot be used",
            with(waits(|_| {}), snapshot_fails(Class::Snapshot)),
            Asks(Observe::SnapshotMarks, because),
        ),
        (
            "its snapshot cannot be used, and may be replaced",
            with(
                waits(|o| o.observations.snapshot_marks = Some(Some(marks()))),
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
                o.observations.snapshot = Some(Some(SnapshotFacts {
                    recreate,
                    ..snapshot()
                }));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark::RECREATED,
                    at: version("snapshot"),
                },
                Reason::JobSetRecreated,
            ),
        ),
        (
            "it has a snapshot",
            waits(|o| o.observations.snapshot = Some(Some(snapshot()))),
            Asks(Observe::LiveJobSet { uid: uid() }, because),
        ),
        (
            "it is rendered otherwise than its snapshot says",
            goes(|o| {
                o.observations.renderings.clear();
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
            "it has run and was suspended",
            goes(|o| {
                let started = true;
                o.observations.live = Some(LiveJobSet { started, ..live() });
            }),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark::STARTED,
                    at: version("snapshot"),
                },
                because,
            ),
        ),
        (
            "it is to run",
            goes(|_| {}),
            Asks(Observe::Placement(PlacementSource::Applied), because),
        ),
        (
            "its Jobs have no active pods",
            with(goes(|_| {}), |o| places(o, false)),
            Act(over(false), because),
        ),
        (
            "its Jobs have something to lose",
            with(goes(|_| {}), |o| places(o, true)),
            Act(over(true), because),
        ),
        (
            "it cannot change",
            with(with(goes(|_| {}), |o| places(o, false)), immutable(false)),
            Asks(Observe::Creatable { held: false }, Reason::Immutable),
        ),
        (
            "it cannot change, and another one could be created",
            with(
                with(goes(|o| o.observations.creatable = Some(())), |o| {
                    places(o, false)
                }),
                immutable(false),
            ),
            Act(Action::DeleteJobSet(version("live")), Reason::Immutable),
        ),
        (
            "it cannot change while pods of it end",
            with(
                with(
                    goes(|o| {
                        let active = true;
                        o.observations.live = Some(LiveJobSet { active, ..live() });
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
            o.observations.snapshot = Some(Some(started_snapshot()));
            o.observations.live = Some(live());
            renders(o, PINNED, rendered(&[]));
            change(o);
        })
    };
    fn removed(o: &mut Observed) {
        let removed = true;
        o.observations.live = Some(LiveJobSet { removed, ..live() });
        o.observations.placement = Some(Placement {
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
                o.observations.snapshot = Some(Some(started_snapshot()));
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
                o.observations.snapshot = Some(Some(snapshot()));
            }),
            Act(
                Action::MarkSnapshot {
                    mark: SnapshotMark::STARTED,
                    at: version("snapshot"),
                },
                because,
            ),
        ),
        (
            "it has no snapshot",
            with(begun(that_ran(), Some(job_set(true))), |o| {
                o.observations.snapshot = Some(None)
            }),
            Asks(Observe::Runtime, because),
        ),
        (
            "it has no snapshot and no runtime",
            with(begun(that_ran(), Some(job_set(true))), |o| {
                o.observations.snapshot = Some(None);
                o.observations.live = Some(live());
                failed_runtime(o);
            }),
            Asks(Observe::Placement(PlacementSource::Live), because),
        ),
        (
            "it is rendered",
            goes(|_| {}),
            Asks(Observe::Placement(PlacementSource::Rendered), because),
        ),
        (
            "its plugins are gone",
            with(goes(|o| o.observations.renderings.clear()), |o| {
                failed(
                    Step::Observe(Observe::Rendering(PINNED)),
                    Class::PlanIsPinned,
                )(o);
            }),
            Asks(Observe::Placement(PlacementSource::Noted), because),
        ),
        (
            "its pods are where they should be",
            goes(|o| {
                o.observations.placement = Some(Placement {
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
                o.observations.placement = Some(Placement {
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
                o.observations.jobs = Some(vec![old_job(false)]);
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
                o.observations.jobs = Some(vec![old_job(true)]);
            }),
            Fails(ReconcileFailure::Blocked(Finding::JobsHaveOldPlacement)),
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

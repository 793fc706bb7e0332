#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod says_why;

use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn differs(differing: u32, refused: u32) -> Comparison {
    Comparison {
        differing,
        refused,
        not_compared: 0,
    }
}

fn minutes(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

fn revision(number: u64, hash: &str, stage: Option<Stage>) -> RevisionFacts {
    RevisionFacts {
        number,
        name: format!("rev-{number}-{hash}"),
        hash: hash.to_owned(),
        stage,
        percent: 0,
        since: stage.map(|_| minutes(0)),
        reason: String::new(),
        message: String::new(),
        asked: Asked::default(),
        has_run: false,
    }
}

/// A cluster with its PolicyPlugins, and a leader without memory.
#[derive(Clone, Debug)]
struct World {
    revisions: Vec<RevisionFacts>,
    wanted: String,
    known: CandidateFacts,
    now: Timestamp,
    used: u64,
    /// The revision that the leader holds in memory.
    held: Option<RevisionFacts>,
    /// Whether a revision has run that does not exist any more.
    is_lost: bool,
    settings: RolloutSettings,
}

impl World {
    fn of(revisions: Vec<RevisionFacts>, wanted: &str) -> Self {
        Self {
            used: revisions.iter().map(|it| it.number).max().unwrap_or(0),
            revisions,
            wanted: wanted.to_owned(),
            known: CandidateFacts {
                watched: Watched::Since(minutes(0)),
                ..CandidateFacts::default()
            },
            now: minutes(0),
            held: None,
            is_lost: false,
            settings: RolloutSettings::default(),
        }
    }

    /// The leader holds the revision that runs, if there is one.
    fn hold(&mut self) {
        let running = running(&self.revisions).cloned();
        self.held = running.or(self.held.take());
    }

    /// Another process leads, which holds only what runs.
    fn restart(&mut self) {
        self.held = None;
        self.hold();
    }

    fn delete(&mut self, at: usize) {
        if at < self.revisions.len() {
            self.hold();
            let gone = self.revisions.remove(at);
            self.is_lost |= gone.stage == Some(Stage::Running);
        }
    }

    fn next(&self) -> Next {
        let number = rolling(&self.revisions).map_or(0, |it| it.number);
        next(&Facts {
            revisions: &self.revisions,
            wanted: Some(&self.wanted),
            candidate: Some(CandidateFacts {
                number,
                ..self.known.clone()
            }),
            held: self.held.as_ref().map(|held| held.number),
            is_lost: self.is_lost,
            now: self.now,
            settings: &self.settings,
        })
    }

    fn propose(&mut self) {
        if let Proposal::Create(number) = proposal(&self.revisions, &self.wanted, self.used) {
            assert!(number > self.used);
            self.used = number;
            self.revisions
                .push(revision(number, &self.wanted.clone(), None));
        }
    }

    fn act(&mut self) -> Next {
        let next = self.next();
        match &next {
            Next::Write(new) => {
                let at = self.at(new.number);
                let it = &mut self.revisions[at];
                (it.stage, it.percent) = (Some(new.stage), new.percent);
                (it.reason, it.message) = (new.reason.to_owned(), new.message.clone());
                if new.begins {
                    it.since = Some(self.now);
                }
            }
            Next::Delete(number) => {
                let at = self.at(*number);
                self.revisions.remove(at);
            }
            Next::Recreate(number) => {
                let held = self.held.as_ref().unwrap();
                assert_eq!(held.number, *number);
                let mut again = revision(*number, &held.hash, None);
                again.has_run = true;
                self.revisions.push(again);
                self.revisions.sort_by_key(|it| it.number);
            }
            Next::Compare(_) | Next::Wait(_) => {}
        }
        self.hold();
        next
    }

    fn at(&self, number: u64) -> usize {
        self.revisions
            .iter()
            .position(|it| it.number == number)
            .unwrap()
    }

    fn stage(&self, number: u64) -> Option<Stage> {
        self.revisions[self.at(number)].stage
    }

    fn count(&self, stages: &[Stage]) -> usize {
        let at = |it: &&RevisionFacts| it.stage.is_some_and(|stage| stages.contains(&stage));
        self.revisions.iter().filter(at).count()
    }

    /// Acts until nothing is left to do. Comparisons are made, and time passes.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.propose();
            match self.act() {
                Next::Compare(_) => {
                    self.known.comparison = Some(self.known.comparison.unwrap_or_default())
                }
                Next::Wait(None) => return,
                Next::Wait(Some(until)) => {
                    assert!(until > self.now);
                    self.now = until;
                }
                Next::Write(_) | Next::Delete(_) | Next::Recreate(_) => {}
            }
        }
        panic!("it does not settle: {self:?}");
    }
}

#[test]
fn the_first_revision_runs_at_once() {
    let mut world = World::of(vec![], "a");
    world.settle();
    assert_eq!(world.revisions.len(), 1);
    assert_eq!(
        (world.stage(1), &*world.revisions[0].reason),
        (Some(Stage::Running), "First")
    );
    assert_eq!(world.now, minutes(0));
}

#[test]
fn a_revision_without_a_difference_runs_at_once() {
    let mut world = World::of(vec![revision(1, "a", Some(Stage::Running))], "b");
    world.settle();
    assert_eq!(
        [world.stage(1), world.stage(2)],
        [Some(Stage::Previous), Some(Stage::Running)]
    );
    assert_eq!(world.now, minutes(0));
}

#[test]
fn a_revision_with_differences_goes_through_all_shares() {
    let mut world = World::of(vec![revision(1, "a", Some(Stage::Running))], "b");
    world.known.comparison = Some(differs(1, 0));
    world.propose();
    let mut stages = Vec::new();
    while !matches!(world.stage(2), Some(Stage::Running)) {
        match world.act() {
            Next::Write(new) => stages.push((new.stage, new.percent, world.now)),
            Next::Wait(Some(until)) => world.now = until,
            next => panic!("{next:?}"),
        }
    }
    assert_eq!(
        stages,
        [
            (Stage::Shadow, 0, minutes(0)),
            (Stage::Share, 10, minutes(0)),
            (Stage::Share, 50, minutes(5)),
            (Stage::Running, 100, minutes(10)),
        ]
    );
}

#[test]
fn what_could_not_be_compared_counts_as_different() {
    let mut world = World::of(vec![revision(1, "a", Some(Stage::Running))], "b");
    world.known.comparison = Some(Comparison {
        not_compared: 1,
        ..Comparison::default()
    });
    world.propose();
    world.act();
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Share));
}

#[test]
fn new_refusals_and_removed_plugins_wait_until_somebody_accepts_them() {
    for (comparison, removed, reason) in [
        (differs(0, 1), vec![], "NewRefusals"),
        (
            Comparison::default(),
            vec!["guard".to_owned()],
            "RemovesPlugins",
        ),
    ] {
        let mut world = World::of(vec![revision(1, "a", Some(Stage::Running))], "b");
        world.known.comparison = Some(comparison);
        world.known.removed = removed;
        world.settle();
        assert_eq!(
            (world.stage(2), &*world.revisions[1].reason),
            (Some(Stage::Shadow), reason)
        );
        world.revisions[1].asked.accept = true;
        world.settle();
        assert_eq!(world.stage(2), Some(Stage::Running), "{reason}");
    }
}

#[test]
fn failures_of_several_namespaces_roll_a_share_back() {
    let share = |failures| {
        let mut world = World::of(
            vec![
                revision(1, "a", Some(Stage::Running)),
                revision(2, "b", Some(Stage::Share)),
            ],
            "b",
        );
        world.known.comparison = Some(differs(1, 0));
        world.known.failures = failures;
        world.settle();
        (world.stage(1).unwrap(), world.stage(2).unwrap())
    };
    let failures = |train_jobs, namespaces, all_train_jobs, all_namespaces| Failures {
        train_jobs,
        namespaces,
        all_train_jobs,
        all_namespaces,
        ..Failures::default()
    };
    let (grows, waits, back) = (
        (Stage::Previous, Stage::Running),
        (Stage::Running, Stage::Share),
        (Stage::Running, Stage::RolledBack),
    );
    for (failures, wanted) in [
        (failures(0, 0, 100, 10), grows),
        (failures(1, 1, 1, 1), waits),
        (failures(2, 2, 10, 10), waits),
        (failures(3, 1, 10, 10), waits),
        (failures(3, 2, 10, 10), back),
        (failures(3, 1, 10, 1), back),
        (failures(4, 2, 100, 10), waits),
        (failures(5, 2, 100, 10), back),
    ] {
        assert_eq!(share(failures.clone()), wanted, "{failures:?}");
    }
}

/// A world whose second revision has a share that would grow.
fn share() -> World {
    let all = vec![
        revision(1, "a", Some(Stage::Running)),
        revision(2, "b", Some(Stage::Share)),
    ];
    let mut world = World::of(all, "b");
    world.revisions[1].percent = 50;
    world.now = minutes(6);
    world
}

#[test]
fn a_share_does_not_grow_while_failures_could_not_be_compared() {
    let mut world = share();
    world.known.failures.not_compared = 2;
    let Next::Write(said) = world.act() else {
        panic!("nothing is said")
    };
    assert_eq!(
        (said.stage, said.percent, said.reason),
        (Stage::Share, 50, "FailuresNotCompared")
    );
    assert_eq!(world.act(), Next::Wait(None));
    world.known.failures.not_compared = 0;
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Running));
}

/// Somebody has changed a plugin back, and no revision can be made of that yet.
#[test]
fn a_share_whose_plugins_have_changed_goes_no_further() {
    let mut world = share();
    world.known.is_outdated = true;
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Share));
    assert_eq!(world.revisions[1].reason, super::rolling::OUTDATED);
    assert_eq!(world.act(), Next::Wait(None));
    world.known.is_outdated = false;
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Running));
}

/// Accepting refusals in the shadow is not enough.
#[test]
fn a_share_with_failures_grows_only_if_somebody_accepts_them() {
    for (train_jobs, accept_failures, wanted) in [
        (5, false, Stage::RolledBack),
        (1, false, Stage::Share),
        (5, true, Stage::Running),
        (1, true, Stage::Running),
    ] {
        let mut world = share();
        world.revisions[1].asked.accept = true;
        world.revisions[1].asked.accept_failures = accept_failures;
        world.known.failures = Failures {
            train_jobs,
            namespaces: train_jobs.min(3),
            all_train_jobs: 5,
            all_namespaces: 3,
            not_compared: 1,
            examples: Vec::new(),
        };
        world.act();
        assert_eq!(world.stage(2), Some(wanted));
    }
}

/// The message is renewed, because other TrainJobs may fail in the meantime.
#[test]
fn a_share_with_a_few_failures_says_which_until_there_are_none() {
    let mut world = share();
    for namespace in ["ml", "rl"] {
        world.known.failures = Failures {
            train_jobs: 1,
            namespaces: 1,
            examples: vec![format!("{namespace}/late")],
            all_train_jobs: 9,
            all_namespaces: 3,
            not_compared: 0,
        };
        let Next::Write(said) = world.act() else {
            panic!("nothing is said")
        };
        assert_eq!(
            (said.stage, said.percent, said.reason, said.begins),
            (Stage::Share, 50, "NewFailures", false)
        );
        for part in [
            &format!("{namespace}/late"),
            "trainyard.dev/accept=failures",
        ] {
            assert!(said.message.contains(part), "{said:?}");
        }
        assert_eq!(world.act(), Next::Wait(None));
    }
    world.known.failures = Failures::default();
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Running));
}

#[test]
fn rollouts_wait_for_lagging_replicas_for_a_limited_time() {
    let mut world = World::of(
        vec![
            revision(1, "a", Some(Stage::Running)),
            revision(2, "b", Some(Stage::Share)),
        ],
        "b",
    );
    world.revisions[1].percent = 50;
    world.known.lagging = 1;
    world.now = minutes(6);
    // It says so.
    world.act();
    assert_eq!(
        (world.stage(2), &*world.revisions[1].reason),
        (Some(Stage::Share), "ReplicasLag")
    );
    assert_eq!(world.act(), Next::Wait(Some(minutes(7))));
    world.now = minutes(7);
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Running));
}

#[test]
fn the_running_revision_is_rolled_back_to_the_one_before() {
    let mut world = World::of(
        vec![
            revision(1, "a", Some(Stage::Previous)),
            revision(2, "b", Some(Stage::Running)),
        ],
        "b",
    );
    world.revisions[1].asked.roll_back = true;
    world.settle();
    assert_eq!(
        [world.stage(1), world.stage(2)],
        [Some(Stage::Running), Some(Stage::RolledBack)]
    );
    // Another try is another revision.
    world.revisions[1].asked.retry = true;
    world.settle();
    assert_eq!(world.stage(3), Some(Stage::Running));
    assert_eq!(world.revisions[2].hash, "b");
}

#[test]
fn a_revision_that_should_be_rolled_back_itself_does_not_run_again() {
    let all = vec![
        revision(1, "a", Some(Stage::Previous)),
        revision(2, "b", Some(Stage::Previous)),
        revision(3, "c", Some(Stage::Running)),
    ];
    let mut world = World::of(all, "c");
    world.revisions[1].asked.roll_back = true;
    world.revisions[2].asked.roll_back = true;
    world.act();
    assert_eq!(world.stage(1), Some(Stage::Running));
}

#[test]
fn a_newer_revision_takes_the_place_of_one_that_is_rolled_out_before_it_begins() {
    let all = vec![
        revision(1, "a", Some(Stage::Running)),
        revision(2, "b", Some(Stage::Share)),
        revision(3, "c", None),
    ];
    let mut world = World::of(all, "c");
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Superseded));
}

#[test]
fn a_share_of_all_namespaces_is_no_share() {
    let mut world = share();
    world.settings.steps = vec![50, 100];
    let Next::Write(new) = world.act() else {
        panic!("nothing is said")
    };
    assert_eq!((new.stage, new.percent), (Stage::Running, 100));
}

#[test]
fn without_an_earlier_revision_the_running_one_stays() {
    let mut world = World::of(vec![revision(1, "a", Some(Stage::Running))], "a");
    world.revisions[0].asked.roll_back = true;
    world.now = minutes(5);
    world.settle();
    let it = &world.revisions[0];
    assert_eq!(
        (it.stage, it.percent, it.since, &*it.reason),
        (
            Some(Stage::Running),
            100,
            Some(minutes(0)),
            "NothingToRollBackTo"
        )
    );
}

#[test]
fn if_the_running_revision_is_deleted_the_one_before_runs_and_nothing_untested() {
    for stage in [None, Some(Stage::Shadow), Some(Stage::Share)] {
        let mut world = World::of(
            vec![
                revision(1, "a", Some(Stage::Previous)),
                revision(2, "b", Some(Stage::Previous)),
                revision(4, "d", stage),
            ],
            "d",
        );
        world.act();
        let restored = &world.revisions[1];
        assert_eq!(
            (restored.stage, &*restored.reason, world.stage(4)),
            (Some(Stage::Running), "Restored", stage)
        );
    }
}

/// Without an earlier one, what the leader holds in memory is written again, even if it is killed between the two writes.
#[test]
fn if_the_only_revision_is_deleted_it_runs_again_and_nothing_untested() {
    for (stage, is_killed) in [None, Some(Stage::Shadow), Some(Stage::Share)]
        .into_iter()
        .flat_map(|stage| [(stage, false), (stage, true)])
    {
        let all = vec![
            revision(1, "a", Some(Stage::Running)),
            revision(2, "b", stage),
        ];
        let mut world = World::of(all, "b");
        world.delete(0);
        assert_eq!(world.act(), Next::Recreate(1));
        if is_killed {
            world.restart();
            assert_eq!(world.held, None);
        }
        world.act();
        let of = |world: &World| (world.stage(1), world.stage(2));
        assert_eq!(of(&world), (Some(Stage::Running), stage));
        assert_eq!(world.revisions[0].reason, "Restored");
        world.settle();
        assert_eq!(of(&world), (Some(Stage::Previous), Some(Stage::Running)));
    }
}

#[test]
fn without_any_memory_the_newest_plugins_run_and_that_is_said() {
    for stage in [None, Some(Stage::Shadow), Some(Stage::Share)] {
        let all = vec![
            revision(1, "a", Some(Stage::Running)),
            revision(2, "b", stage),
        ];
        let mut world = World::of(all, "b");
        world.delete(0);
        world.restart();
        world.act();
        assert_eq!(
            (world.stage(2), &*world.revisions[0].reason),
            (Some(Stage::Running), "NothingToCompareWith")
        );
    }
}

#[test]
fn a_revision_that_was_rolled_back_is_not_restored_from_memory() {
    let all = vec![
        revision(1, "a", Some(Stage::RolledBack)),
        revision(2, "b", Some(Stage::Share)),
    ];
    let mut world = World::of(all, "b");
    world.held = world.revisions.first().cloned();
    world.act();
    assert_eq!(world.stage(2), Some(Stage::Running));
}

#[test]
fn a_share_that_nobody_watches_says_so_until_somebody_does() {
    let all = vec![
        revision(1, "a", Some(Stage::Running)),
        revision(2, "b", Some(Stage::Share)),
    ];
    let mut world = World::of(all, "b");
    world.revisions[1].percent = 50;
    world.known.watched = Watched::No("plugin a is skipped".to_owned());
    // Replicas have just begun to load it.
    assert_eq!(world.act(), Next::Wait(Some(minutes(1))));
    world.now = minutes(1);
    let Next::Write(said) = world.act() else {
        panic!("nothing is said")
    };
    assert!(said.message.contains("plugin a is skipped"), "{said:?}");
    let of = |said: &NewStage| (said.stage, said.percent, said.reason, said.begins);
    assert_eq!(of(&said), (Stage::Share, 50, "NotWatched", false));
    assert_eq!(world.act(), Next::Wait(None));
    world.known.watched = Watched::Since(minutes(1));
    let Next::Write(said) = world.act() else {
        panic!("it still says so")
    };
    assert_eq!(of(&said), (Stage::Share, 50, "Progressing", false));
    assert_eq!(world.act(), Next::Wait(Some(minutes(6))));
}

/// A plugin that runs is gone for good, and the new revision is the repair.
#[test]
fn a_share_with_nothing_to_compare_with_goes_on_if_a_person_says_so() {
    let all = vec![
        revision(1, "a", Some(Stage::Running)),
        revision(2, "b", Some(Stage::Share)),
    ];
    let mut world = World::of(all, "b");
    world.revisions[1].percent = 50;
    world.known.watched = Watched::NothingToCompareWith("plugin a is skipped".to_owned());
    world.now = minutes(6);
    let Next::Write(said) = world.act() else {
        panic!("nothing is said")
    };
    assert_eq!((said.stage, said.reason), (Stage::Share, "NotWatched"));
    for part in [
        "plugin a is skipped",
        "make it available",
        "trainyard.dev/accept=failures",
    ] {
        assert!(said.message.contains(part), "{said:?}");
    }
    assert_eq!(world.act(), Next::Wait(None));
    world.revisions[1].asked.accept_failures = true;
    let Next::Write(done) = world.act() else {
        panic!("it still waits")
    };
    assert_eq!((done.stage, done.reason), (Stage::Running, "Completed"));
}

fn watched_since(time: Option<Timestamp>) -> Watched {
    time.map_or_else(Watched::default, Watched::Since)
}

#[test]
fn a_share_grows_only_after_it_was_watched() {
    let share = |since, watched, now| {
        let mut world = World::of(
            vec![
                revision(1, "a", Some(Stage::Running)),
                revision(2, "b", Some(Stage::Share)),
            ],
            "b",
        );
        world.revisions[1].percent = 50;
        world.revisions[1].since = since;
        (world.known.watched, world.now) = (watched_since(watched), now);
        world.act();
        world.stage(2) == Some(Stage::Running)
    };
    let at = |time| Some(minutes(time));
    for (since, watched, now, grows) in [
        (at(0), None, 60, false),
        (at(0), at(0), 4, false),
        (at(0), at(0), 5, true),
        // Another leader.
        (at(0), at(60), 64, false),
        (at(0), at(60), 65, true),
        // A clock that is ahead, and none.
        (at(600), at(0), 4, false),
        (at(600), at(0), 5, true),
        (None, at(0), 4, false),
        (None, at(0), 5, true),
    ] {
        let now = minutes(now);
        assert_eq!(share(since, watched, now), grows, "{since:?} {watched:?}");
    }
}

#[test]
fn the_last_ten_revisions_and_those_in_use_are_kept() {
    let mut all: Vec<_> = (2..30)
        .map(|number| revision(number, &number.to_string(), Some(Stage::RolledBack)))
        .collect();
    all.insert(0, revision(1, "1", Some(Stage::Running)));
    all[1].stage = Some(Stage::Previous);
    let mut world = World::of(all, "1");
    world.settle();
    let kept: Vec<_> = world.revisions.iter().map(|it| it.number).collect();
    assert_eq!(kept, [vec![1, 2], (20..30).collect()].concat());
}

/// A fact that changes.
#[derive(Clone, Debug)]
enum Change {
    Wanted(u8),
    Compared(u32, u32),
    NotCompared,
    Refused(bool),
    Removed(bool),
    Failures(usize),
    Lagging(usize),
    Asked(usize, Asked),
    Minutes(i64),
    Acts(u8),
    Proposes,
    Deletes(usize),
    Restarts,
    Watched(bool),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let asked = (any::<bool>(), any::<bool>(), any::<bool>());
    let asked = asked.prop_map(|(accept, roll_back, retry)| Asked {
        accept,
        accept_failures: accept && retry,
        roll_back,
        retry,
    });
    let change = prop_oneof![
        (0..4_u8).prop_map(Change::Wanted),
        (0..2_u32, 0..2_u32).prop_map(|(a, b)| Change::Compared(a, b)),
        Just(Change::NotCompared),
        any::<bool>().prop_map(Change::Refused),
        any::<bool>().prop_map(Change::Removed),
        (0..5_usize).prop_map(Change::Failures),
        (0..2_usize).prop_map(Change::Lagging),
        (0..12_usize, asked).prop_map(|(at, asked)| Change::Asked(at, asked)),
        (0..20_i64).prop_map(Change::Minutes),
        (1..4_u8).prop_map(Change::Acts),
        Just(Change::Proposes),
        (0..12_usize).prop_map(Change::Deletes),
        Just(Change::Restarts),
        any::<bool>().prop_map(Change::Watched),
    ];
    proptest::collection::vec(change, 0..60)
}

fn stages() -> impl Strategy<Value = Vec<RevisionFacts>> {
    let stage = prop_oneof![
        Just(Stage::Previous),
        Just(Stage::Superseded),
        Just(Stage::Refused),
        Just(Stage::RolledBack),
    ];
    let ended = proptest::collection::vec((stage, 0..4_u8), 0..12);
    let live = prop_oneof![
        Just(None),
        Just(Some(Stage::Shadow)),
        Just(Some(Stage::Share))
    ];
    (ended, 0..4_u8, proptest::option::of((live, 0..4_u8))).prop_map(|(ended, running, live)| {
        let ended = ended.into_iter().map(|(stage, hash)| (Some(stage), hash));
        let all = ended.chain([(Some(Stage::Running), running)]).chain(live);
        let all = all.zip(1..);
        all.map(|((stage, hash), number)| revision(number, &hash.to_string(), stage))
            .collect()
    })
}

proptest! {
    #[test]
    fn one_revision_always_runs_and_at_most_one_is_rolled_out(start in stages(), changes in changes()) {
        let mut world = World::of(start, "0");
        world.hold();
        for change in changes {
            let before = world.clone();
            match change {
                Change::Wanted(hash) => world.wanted = hash.to_string(),
                Change::Compared(differing, refused) => world.known.comparison = Some(differs(differing, refused)),
                Change::NotCompared => world.known.comparison = None,
                Change::Refused(is) => world.known.refused = is.then(|| "why".to_owned()),
                Change::Removed(is) => world.known.removed = is.then(|| "guard".to_owned()).into_iter().collect(),
                Change::Failures(train_jobs) => world.known.failures = Failures {
                    train_jobs, namespaces: train_jobs.min(2), all_train_jobs: 20, all_namespaces: 4, ..Failures::default()
                },
                Change::Lagging(lagging) => world.known.lagging = lagging,
                Change::Asked(at, asked) => if let Some(it) = world.revisions.get_mut(at) {
                    it.asked = asked;
                },
                Change::Minutes(minutes) => world.now += SignedDuration::from_mins(minutes),
                Change::Acts(times) => for _ in 0..times {
                    let before = world.clone();
                    let ran = |it: &RevisionFacts| it.stage == Some(Stage::Previous) || it.has_run && it.stage.is_none();
                    let may_return = before.revisions.iter().any(ran);
                    let next = world.act();
                    let (was, is) = (before.count(&[Stage::Running]), world.count(&[Stage::Running]));
                    prop_assert!(is >= was.min(1) && is <= 2, "{before:?}");
                    prop_assert!(world.count(&[Stage::Shadow, Stage::Share]) <= 1, "{before:?}");
                    // Failures that nobody has accepted do not get to more namespaces.
                    if let (Next::Write(new), Some(share)) = (&next, rolling(&before.revisions))
                        && was > 0 && share.stage == Some(Stage::Share) && new.number == share.number && new.percent > share.percent {
                        prop_assert!(before.known.failures.train_jobs == 0 || share.asked.accept_failures, "{before:?}");
                    }
                    // As long as the cluster or the leader has what ran, nothing else runs.
                    if let Next::Write(NewStage { stage: Stage::Running, reason, number, .. }) = next && was == 0 {
                        let held = before.held.as_ref().filter(|held| before.revisions.iter().all(|it| it.number != held.number));
                        prop_assert_eq!(reason == RESTORED, may_return, "{:?}", before);
                        prop_assert!(may_return || held.is_none(), "{before:?}");
                        prop_assert!(!may_return || ran(&before.revisions[before.at(number)]), "{before:?}");
                    }
                },
                Change::Deletes(at) => world.delete(at),
                Change::Restarts => world.restart(),
                Change::Watched(is) => world.known.watched = watched_since(is.then_some(world.now)),
                Change::Proposes => {
                    let was_back = |it: &&RevisionFacts| it.hash == world.wanted;
                    let newest = before.revisions.iter().rev().find(was_back);
                    let is_blocked = newest.is_some_and(|it| it.stage == Some(Stage::RolledBack) && !it.asked.retry);
                    world.propose();
                    prop_assert!(!is_blocked || world.revisions.len() == before.revisions.len());
                }
            }
        }
        // Facts stop.
        world.known.watched = Watched::Since(world.now);
        for it in &mut world.revisions {
            it.asked.retry = false;
        }
        world.settle();
        // What was rolled back does not run although nothing else is left.
        let asked = proposal(&world.revisions, &world.wanted, world.used);
        let is_blocked = world.is_lost && matches!(asked, Proposal::Blocked(_));
        let runs = world.count(&[Stage::Running]);
        prop_assert!(runs == 1 || runs == 0 && is_blocked);
        prop_assert!(world.revisions.iter().all(|it| it.stage.is_some()));
        for it in world.revisions.iter().filter(|it| it.stage == Some(Stage::Share)) {
            prop_assert_eq!(&*it.reason, super::rolling::FAILS);
        }
        for it in world.revisions.iter().filter(|it| it.stage == Some(Stage::Shadow)) {
            prop_assert!([super::rolling::REMOVES, super::rolling::REFUSES].contains(&&*it.reason));
        }
    }
}

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::breaker::{LONGEST_PAUSE, PAUSE, everywhere::REMEMBERED};

const SECOND: Duration = Duration::from_secs(1);

/// The breakers of a plugin with a clock.
struct World {
    breakers: PluginBreakers,
    now: Instant,
}

impl World {
    fn new() -> Self {
        Self {
            breakers: PluginBreakers::default(),
            now: Instant::now(),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn admits(&mut self, namespace: &str) -> Result<(), Refusal> {
        let caller = (namespace.into(), Phase::Transform);
        self.breakers.admit(&caller, Asks::ToUse, self.now)
    }

    fn ended(&mut self, namespace: &str, end: CallEnd) -> Ended {
        let words = end.is_failure().then(|| FailureWords {
            kind: "trap",
            words: format!("trapped: {end:?}"),
        });
        let caller = (namespace.into(), Phase::Transform);
        let now = (self.now, SystemTime::UNIX_EPOCH);
        self.breakers
            .ended((&caller, Asks::ToUse), (end, words), now)
    }

    /// Makes a call.
    fn call(&mut self, namespace: &str, end: CallEnd) -> Option<Turn> {
        self.admits(namespace).unwrap();
        self.ended(namespace, end).turn
    }

    fn is_paused(&mut self) -> bool {
        self.breakers.failing(self.now).is_some()
    }
}

/// Returns breakers of a plugin that failed in the namespaces `a`, `b` and `c`.
fn paused() -> World {
    let mut world = World::new();
    for namespace in ["a", "a", "b"] {
        assert_eq!(world.call(namespace, CallEnd::Failed), None);
    }
    assert_eq!(world.call("c", CallEnd::Exhausted), Some(Turn::Begins));
    world
}

#[test]
fn a_plugin_that_fails_in_three_namespaces_is_paused_for_all() {
    let mut world = paused();
    let (phase, failing) = world.breakers.failing(world.now).unwrap();
    assert_eq!((phase, failing.namespaces), (Phase::Transform, 3));
    assert_eq!(failing.last.unwrap().words, "trapped: Exhausted");
    // The last one waits. Any other one has a trial at once.
    assert_eq!(world.admits("c"), Err(Refusal::everywhere()));
    assert_eq!(world.breakers.open(world.now), 1);
    for namespace in ["a", "d"] {
        assert_eq!(world.call(namespace, CallEnd::Failed), None);
        assert_eq!(world.admits(namespace), Err(Refusal::everywhere()));
    }
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let start = world.now;
        while world.admits("d").is_err() {
            world.pass(SECOND);
        }
        pauses.push((world.now - start).as_secs());
        world.ended("d", CallEnd::Failed);
    }
    assert_eq!(pauses, [30, 60, 120, 240, 300]);
}

#[test]
fn one_success_ends_the_pause_for_all() {
    let mut world = paused();
    assert_eq!(world.call("d", CallEnd::Answered), Some(Turn::Ends));
    for namespace in ["a", "b", "c", "d"] {
        assert_eq!(world.call(namespace, CallEnd::Failed), None);
        assert_eq!(world.admits(namespace), Ok(()));
    }
    // It begins again only if nothing succeeds for ten minutes.
    world.pass(WINDOW);
    for namespace in ["a", "b", "c", "d"] {
        assert_eq!(world.call(namespace, CallEnd::Failed), None);
    }
    world.pass(SECOND);
    assert_eq!(world.call("a", CallEnd::Failed), Some(Turn::Begins));
}

#[test]
fn failures_long_ago_and_calls_that_say_nothing_do_not_count() {
    let mut world = World::new();
    world.call("a", CallEnd::Failed);
    world.pass(WINDOW + SECOND);
    for namespace in ["b", "c"] {
        assert_eq!(world.call(namespace, CallEnd::Failed), None);
    }
    for namespace in ["d", "e", "f"] {
        assert_eq!(world.call(namespace, CallEnd::Undecided), None);
    }
    assert!(!world.is_paused());
    // Nor does such a call end a pause.
    let mut world = paused();
    assert_eq!(world.call("d", CallEnd::Undecided), None);
    assert!(world.is_paused());
}

#[test]
fn phases_fail_apart() {
    let mut world = paused();
    let build = ("c".into(), Phase::Build);
    let now = (world.now, SystemTime::UNIX_EPOCH);
    world.breakers.admit(&build, Asks::ToUse, now.0).unwrap();
    let ended = (CallEnd::Answered, None);
    let ended = world.breakers.ended((&build, Asks::ToUse), ended, now);
    assert_eq!(ended, Ended::default());
    assert!(world.breakers.is_paused_in(Phase::Transform));
    assert!(!world.breakers.is_paused_in(Phase::Build));
}

#[test]
fn a_paused_plugin_can_be_resumed() {
    let mut world = paused();
    assert!(world.breakers.resume() && !world.breakers.resume());
    assert!(!world.is_paused());
    world.admits("c").unwrap();
}

#[test]
fn a_pause_that_nobody_asks_about_is_forgotten() {
    let mut world = paused();
    for _ in 0..10 {
        world.pass(WINDOW);
        // Refused or not, it is asked for.
        let _ = world.admits("c");
        assert!(world.is_paused());
    }
    world.pass(WINDOW + SECOND);
    assert!(!world.is_paused());
}

#[test]
fn a_plugin_that_is_not_called_any_more_has_no_open_breaker() {
    let mut world = paused();
    assert_eq!(world.breakers.open(world.now), 1);
    world.pass(PAUSE + LONGEST_PAUSE);
    assert_eq!(world.breakers.open(world.now), 1);
    world.pass(SECOND);
    assert_eq!(world.breakers.open(world.now), 0);
}

#[test]
fn what_judges_a_plugin_is_not_paused_and_pauses_nothing() {
    let mut world = paused();
    let caller = ("c".into(), Phase::Transform);
    let judge = |world: &mut World| world.breakers.admit(&caller, Asks::ToJudge, world.now);
    assert_eq!(judge(&mut world), Ok(()));
    let now = (world.now, SystemTime::UNIX_EPOCH);
    for end in [CallEnd::Answered, CallEnd::Failed] {
        let ended = world
            .breakers
            .ended((&caller, Asks::ToJudge), (end, None), now);
        assert_eq!(ended, Ended::default());
    }
    assert!(world.is_paused());
    assert_eq!(world.admits("c"), Err(Refusal::everywhere()));
    // Nor is it paused in a namespace whose calls exhaust their limits.
    let mut world = World::new();
    for _ in 0..5 {
        world.call("c", CallEnd::Exhausted);
    }
    assert!(matches!(world.admits("c"), Err(Refusal::Namespace(_))));
    assert_eq!(judge(&mut world), Ok(()));
    let mut world = World::new();
    for _ in 0..5 {
        let end = (CallEnd::Exhausted, None);
        let ended = world.breakers.ended((&caller, Asks::ToJudge), end, now);
        assert_eq!(ended, Ended::default());
    }
    assert_eq!(world.admits("c"), Ok(()));
}

#[test]
fn what_is_remembered_does_not_grow_with_the_namespaces() {
    let mut world = World::new();
    for number in 0..5_000 {
        let namespace = format!("team-{number}");
        world.call(&namespace, CallEnd::Exhausted);
        world.pass(Duration::from_millis(1));
    }
    assert_eq!(world.breakers.breakers.len(), BREAKERS);
    let (_, failing) = world.breakers.failing(world.now).unwrap();
    assert_eq!(failing.namespaces, REMEMBERED);
    assert_eq!(world.call("good", CallEnd::Answered), Some(Turn::Ends));
    assert!(world.breakers.breakers.is_empty());
}

fn ends() -> impl Strategy<Value = CallEnd> {
    prop_oneof![
        Just(CallEnd::Exhausted),
        Just(CallEnd::Failed),
        Just(CallEnd::Undecided),
        Just(CallEnd::Answered),
    ]
}

proptest! {
    /// Whatever others do, and whether they report the ends of their calls.
    #[test]
    fn a_namespace_whose_calls_succeed_never_waits(
        steps in prop::collection::vec((0..6_u8, ends(), any::<bool>(), 0..400_u64), 1..200),
        also_good in 1..10_usize,
    ) {
        let mut world = World::new();
        for (at, (namespace, end, is_reported, seconds)) in steps.into_iter().enumerate() {
            world.pass(SECOND * u32::try_from(seconds).unwrap());
            let namespace = format!("bad-{namespace}");
            if world.admits(&namespace).is_ok() && is_reported {
                world.ended(&namespace, end);
            }
            // Its first call, in a pause or not, is admitted, and ends the pause.
            if at % also_good == 0 {
                prop_assert_eq!(world.admits("good"), Ok(()));
                let was_paused = world.is_paused();
                let turn = world.ended("good", CallEnd::Answered).turn;
                prop_assert_eq!(turn == Some(Turn::Ends), was_paused);
                prop_assert!(!world.is_paused());
                let again = world.admits(&namespace);
                prop_assert_ne!(again, Err(Refusal::everywhere()));
            }
        }
    }

    /// A namespace whose calls failed once, and succeed now, waits for one trial at most.
    #[test]
    fn a_namespace_that_is_corrected_waits_for_one_trial(
        fails in prop::collection::vec((0..4_u8, 0..400_u64), 1..60),
    ) {
        let mut world = World::new();
        for (namespace, seconds) in fails {
            world.pass(SECOND * u32::try_from(seconds).unwrap());
            let namespace = format!("bad-{namespace}");
            if world.admits(&namespace).is_ok() {
                world.ended(&namespace, CallEnd::Failed);
            }
        }
        let start = world.now;
        while world.admits("bad-0").is_err() {
            world.pass(SECOND);
        }
        prop_assert!(world.now - start <= Duration::from_secs(300));
        world.ended("bad-0", CallEnd::Answered);
        prop_assert_eq!(world.admits("bad-0"), Ok(()));
        prop_assert!(!world.is_paused());
    }
}

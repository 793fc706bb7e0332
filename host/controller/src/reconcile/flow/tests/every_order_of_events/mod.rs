//! Every order of events: a model checker runs the real decisions against all that a cluster may do.
//!
//! The [`World`] is the state. [`search`] explores it, [`spec`] says where it has to end, and the calls of the world note what breaks a
//! guarantee at once. CONTRIBUTING.md says how to read a counterexample and how to search deeper.

mod scenarios;
mod search;
mod spec;

use std::{collections::BTreeSet, time::Instant};

use self::{
    scenarios::scenarios,
    search::{Counterexample, Scenario, Step, explore, walk},
};
use super::world::{Event, Sabotage};

/// How many steps of random walks are made then, in each scenario.
const STEPS: usize = 600;

/// Reads a number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn chosen() -> impl Iterator<Item = Scenario> {
    let only = std::env::var("MODEL_SCENARIO").ok();
    let is_chosen =
        move |scenario: &Scenario| only.as_ref().is_none_or(|only| scenario.name == only);
    scenarios().into_iter().filter(is_chosen)
}

/// Fails with all counterexamples.
fn hold(found: Vec<Counterexample>) {
    let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

#[test]
fn guarantees_hold_in_every_order_of_events() {
    let deeper = number("MODEL_DEEPER").unwrap_or(0) as usize;
    let (mut counterexamples, mut calls) = (Vec::new(), BTreeSet::new());
    for scenario in chosen() {
        let (began, depth) = (Instant::now(), scenario.depth + deeper);
        match explore(&scenario, depth) {
            Ok(seen) => {
                eprintln!(
                "{}: {} states and {} steps to depth {depth} in {:.1?}",
                scenario.name,
                seen.states,
                seen.steps,
                began.elapsed()
                );
                calls.extend(seen.calls);
            }
            Err(counterexample) => counterexamples.push(counterexample),
        }
    }
    hold(counterexamples);
    eprintln!("{calls:?}");
}

#[test]
fn guarantees_hold_on_long_random_walks() {
    let steps = number("MODEL_STEPS").map_or(STEPS, |steps| steps as usize);
    let seed = number("MODEL_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("MODEL_SEED={seed}");
    let mut counterexamples = Vec::new();
    for scenario in chosen() {
        let began = Instant::now();
        match walk(&scenario, seed, steps) {
            Ok(seen) => eprintln!(
                "{}: {} states in {} random steps in {:.1?}",
                scenario.name,
                seen.states,
                seen.steps,
                began.elapsed()
            ),
            Err(counterexample) => counterexamples.push(counterexample),
        }
    }
    hold(counterexamples);
}

/// Fails if the guarantees do not hold after these steps, which were a counterexample once.
fn hold_after(name: &str, steps: &[Step]) {
    let mut scenarios = scenarios().into_iter();
    let scenario = scenarios.find(|scenario| scenario.name == name).unwrap();
    let (trace, broken) = scenario.trace(steps);
    assert_eq!(broken, None, "{trace}");
}

#[test]
fn job_sets_that_expire_are_noted_even_if_the_answer_to_their_creation_was_lost() {
    hold_after(
        "expires",
        &[
            // The JobSet is created, and the answer is lost.
            Step::Reconcile(0, vec![(3, 4)]),
            Step::Reconcile(0, vec![]),
            Step::Event(Event::JobSetActs),
            Step::Event(Event::Completes),
            Step::Event(Event::JobSetExpires),
            Step::Event(Event::Restarts(0)),
        ],
    );
}

#[test]
fn failed_reconciles_do_not_hide_that_a_job_set_may_have_ended() {
    hold_after(
        "expires",
        &[
            Step::Reconcile(0, vec![]),
            Step::Event(Event::WatchOfJobSetFallsBehind(0)),
            Step::Event(Event::JobSetActs),
            Step::Event(Event::Completes),
            Step::Event(Event::Suspends),
            Step::Event(Event::JobSetExpires),
            Step::Event(Event::Lists(0)),
            // The creation of the snapshot is refused.
            Step::Reconcile(0, vec![(0, 3)]),
        ],
    );
}

/// Explores a scenario with a fault in the controller and only these events, and returns the shortest counterexample.
fn finds(name: &str, sabotage: Sabotage, events: &[Event]) -> Counterexample {
    let mut scenarios = scenarios().into_iter();
    let mut scenario = scenarios.find(|scenario| scenario.name == name).unwrap();
    (scenario.events, scenario.faults) = (events.to_vec(), false);
    assert!(explore(&scenario, events.len()).is_ok(), "without the fault");
    scenario.sabotage = Some(sabotage);
    let found = explore(&scenario, events.len()).err();
    let found = found.unwrap_or_else(|| panic!("{sabotage:?} is not found"));
    eprintln!("{found}");
    found
}

#[test]
fn a_snapshot_that_is_written_after_its_job_set_is_found() {
    let found = finds("queue", Sabotage::SnapshotLast, &[]);
    assert!(found.guarantee.contains("no object is orphaned"), "{found}");
    assert_eq!(found.steps, [Step::Reconcile(0, vec![])]);
}

#[test]
fn a_secret_that_is_written_after_its_job_set_is_found() {
    let found = finds("queue", Sabotage::SecretLast, &[]);
    assert!(found.guarantee.contains("a JobSet has its objects"), "{found}");
    assert_eq!(found.steps, [Step::Reconcile(0, vec![])]);
}

#[test]
fn job_sets_that_do_not_follow_their_train_job_are_found() {
    let found = finds("queue", Sabotage::AlwaysUpToDate, &[Event::Edits(1)]);
    assert!(found.guarantee.contains("follows"), "{found}");
    assert_eq!(found.steps.len(), 1, "{found}");
}

#[test]
fn job_sets_that_run_again_after_they_expired_are_found() {
    let events = [
        Event::JobSetActs,
        Event::Completes,
        Event::JobSetExpires,
        Event::Restarts(0),
    ];
    let found = finds("expires", Sabotage::NeverExpires, &events);
    assert!(found.guarantee.contains("what ended never runs again"), "{found}");
    let happened = |event: &Event| found.steps.contains(&Step::Event(*event));
    assert!(events.iter().all(happened), "{found}");
}

//! Every order of events: a model checker runs the real decisions against all that a cluster may do.
//!
//! The [`World`] is the state. [`search`] and [`walk`] explore it, [`spec`] says where it has to end, and the calls of the world note what breaks a
//! guarantee at once. CONTRIBUTING.md says how to read a counterexample and how to search deeper.
//!
//! The wrong write orders and decisions of [`Sabotage`] are found, which proves that the search can find faults.

mod scenarios;
mod search;
mod spec;
mod walk;

use std::{collections::BTreeSet, time::Instant};

use self::{
    scenarios::scenarios,
    search::{Counterexample, Scenario, Seen, Step, explore},
    walk::walk,
};
use super::world::{Event, Sabotage};

/// How many steps of random walks are made in each scenario for each change.
const STEPS: usize = 600;

/// All calls and notes of a reconcile, which the scenarios have to reach.
const CALLS: [&str; 59] = [
    "apply JobSet",
    "apply JobSet over",
    "apply JobSet over held",
    "apply JobSet recreated",
    "apply a-live",
    "apply a-while-suspended",
    "apply a-with-jobset",
    "begin",
    "check creatable",
    "check creation",
    "compare again",
    "compare with all",
    "compare with live placement",
    "compare with noted placement",
    "compare with rendered placement",
    "confirm TrainJob",
    "confirm absence",
    "create a-once",
    "create snapshot",
    "delete JobSet",
    "delete node-0",
    "force a-live",
    "force a-while-suspended",
    "force a-with-jobset",
    "forget deleted",
    "forget last",
    "list Jobs",
    "look at a-live",
    "look at a-once",
    "look at a-while-suspended",
    "look at a-with-jobset",
    "mark recreated",
    "mark started",
    "mark started and deleted",
    "note unseen end",
    "read JobSet",
    "read TrainJob",
    "read a-live",
    "read a-once",
    "read a-while-suspended",
    "read a-with-jobset",
    "read list",
    "read marks",
    "read owner",
    "read runtime",
    "read snapshot",
    "relocate",
    "remember",
    "remove error",
    "render pinned runtime",
    "render pinned snapshot",
    "render runtime",
    "render snapshot",
    "replace snapshot",
    "resume",
    "settle",
    "suspend",
    "write error",
    "write status",
];

/// Reads a number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns the only scenario that is searched, if there is one.
fn only() -> Option<String> {
    std::env::var("MODEL_SCENARIO").ok()
}

/// Searches the scenarios, and fails with all counterexamples. Returns the calls that were made.
fn search(search: impl Fn(&Scenario) -> Result<Seen, Counterexample>) -> BTreeSet<String> {
    let (mut counterexamples, mut calls) = (String::new(), BTreeSet::new());
    let is_known = |only: String| scenarios().iter().any(|scenario| scenario.name == only);
    assert!(only().is_none_or(is_known), "no scenario has this name");
    for scenario in scenarios() {
        if only().is_some_and(|only| scenario.name != only) {
            continue;
        }
        let began = Instant::now();
        match search(&scenario) {
            Ok(seen) => {
                let (name, Seen { states, steps, .. }) = (scenario.name, &seen);
                eprintln!(
                    "{name}: {states} states, {steps} steps, {:.1?}",
                    began.elapsed()
                );
                calls.extend(seen.calls);
            }
            Err(counterexample) => counterexamples += &counterexample.to_string(),
        }
    }
    assert!(counterexamples.is_empty(), "{counterexamples}");
    calls
}

#[test]
fn guarantees_hold_in_every_order_of_events() {
    let deeper = number("MODEL_DEEPER").map_or(0, |deeper| deeper as usize);
    let calls = search(|scenario| explore(scenario, scenario.depth + deeper));
    let missed = CALLS.into_iter().filter(|call| !calls.contains(*call));
    let missed: Vec<_> = missed.collect();
    assert!(
        only().is_some() || missed.is_empty(),
        "no scenario makes the calls {missed:?}"
    );
    let new = calls.iter().filter(|call| !CALLS.contains(&call.as_str()));
    let new: Vec<_> = new.collect();
    assert!(new.is_empty(), "CALLS lacks {new:?}");
}

#[test]
fn guarantees_hold_on_long_random_walks() {
    let steps = number("MODEL_STEPS").map_or(STEPS, |steps| steps as usize);
    let given = number("MODEL_SEED").or_else(|| number("PROPTEST_RNG_SEED"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("MODEL_SEED={seed} repeats these walks");
    search(|scenario| walk(scenario, seed, steps));
}

/// Fails if the guarantees do not hold after these steps, which were a counterexample once. Their trace has this line, so the numbers in them
/// still mean what they meant.
fn hold_after(name: &str, line: &str, steps: &[Step]) {
    let mut scenarios = scenarios().into_iter();
    let scenario = scenarios.find(|scenario| scenario.name == name).unwrap();
    let (trace, broken) = scenario.trace(steps);
    assert!(trace.contains(line), "{trace}");
    assert_eq!(broken, None, "{trace}");
}

#[test]
fn job_sets_that_expire_are_noted_even_if_the_answer_to_their_creation_was_lost() {
    hold_after(
        "expires",
        "apply JobSet: takes effect, and its answer is lost",
        &[
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
fn a_controller_that_resumes_too_late_leaves_what_another_resumed() {
    let watch = Step::Event(Event::WatchOfJobTells(1));
    hold_after(
        "two",
        "the second controller: resume: answered",
        &[
            Step::Reconcile(0, vec![]),
            Step::Event(Event::JobSetActs),
            Step::Event(Event::WatchOfJobFallsBehind(1)),
            Step::Event(Event::Resumes),
            Step::Reconcile(0, vec![]),
            Step::Event(Event::Suspends),
            Step::Event(Event::WatchOfJobSetTells(1)),
            Step::Event(Event::Resumes),
            watch.clone(),
            watch.clone(),
            Step::Event(Event::Suspends),
            watch.clone(),
            Step::Reconcile(0, vec![]),
            Step::Event(Event::Admits(1)),
            Step::Reconcile(0, vec![]),
            watch,
            Step::Reconcile(0, vec![(2, 3), (3, 17)]),
        ],
    );
}

#[test]
fn jobs_are_replaced_even_if_another_controller_forgets_what_they_have_to_lose() {
    hold_after(
        "two",
        "the second controller: apply JobSet over held: answered",
        &[
            Step::Reconcile(1, vec![]),
            Step::Event(Event::JobSetActs),
            Step::Event(Event::WatchOfJobTells(1)),
            Step::Event(Event::Edits(1)),
            Step::Event(Event::WatchOfJobFallsBehind(1)),
            Step::Event(Event::Admits(1)),
            Step::Reconcile(0, vec![(6, 3)]),
        ],
    );
}

#[test]
fn failed_reconciles_do_not_hide_that_a_job_set_may_have_ended() {
    hold_after(
        "expires",
        "confirm absence: fails without effect",
        &[
            Step::Reconcile(0, vec![]),
            Step::Event(Event::WatchOfJobSetFallsBehind(0)),
            Step::Event(Event::JobSetActs),
            Step::Event(Event::Completes),
            Step::Event(Event::Suspends),
            Step::Event(Event::JobSetExpires),
            Step::Event(Event::Lists(0)),
            Step::Reconcile(0, vec![(0, 1)]),
        ],
    );
}

/// Explores a scenario with a fault in the controller and only these events, and returns the shortest counterexample.
fn finds(name: &str, sabotage: Sabotage, events: &[Event]) -> Counterexample {
    let mut scenarios = scenarios().into_iter();
    let mut scenario = scenarios.find(|scenario| scenario.name == name).unwrap();
    (scenario.events, scenario.faults) = (events.to_vec(), false);
    assert!(
        explore(&scenario, events.len()).is_ok(),
        "without the fault"
    );
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
    assert!(
        found.guarantee.contains("a JobSet has its objects"),
        "{found}"
    );
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
    assert!(
        found.guarantee.contains("what ended never runs again"),
        "{found}"
    );
    let happened = |event: &Event| found.steps.contains(&Step::Event(*event));
    assert!(events.iter().all(happened), "{found}");
}

#[test]
fn jobs_that_keep_an_earlier_placement_are_found() {
    let found = finds("preempted", Sabotage::KeepsJobs, &[]);
    assert!(
        found
            .guarantee
            .contains("pods have only their current placement"),
        "{found}"
    );
}

#[test]
fn started_job_sets_that_are_rendered_again_are_found() {
    let found = finds("preempted", Sabotage::RendersAgain, &[]);
    assert!(
        found
            .guarantee
            .contains("a JobSet that has started is frozen"),
        "{found}"
    );
}

#[test]
fn objects_of_other_owners_that_are_changed_are_found() {
    let found = finds("others", Sabotage::OwnsAll, &[Event::ObjectIsTaken(0)]);
    assert!(
        found
            .guarantee
            .contains("nothing of other owners is changed"),
        "{found}"
    );
}

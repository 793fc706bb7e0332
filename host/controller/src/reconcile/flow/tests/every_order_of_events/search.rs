//! The search: breadth-first over all that can happen.
//!
//! A step is an event, or a reconcile. A reconcile in which everything is answered is free; each event and each deviation within a reconcile,
//! such as a lost answer or an event between two calls, costs one. So all worlds that need the same number of them are found before those
//! that need more, and a counterexample has as few as possible.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::{self, Write as _},
};

use super::{
    super::world::{Answer, CallKind, Choice, Choices, Event, Sabotage, Schedule, World},
    spec,
};
use crate::reconcile::flow::tests::Fault;

/// A TrainJob, and what can happen to it.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The most events and deviations that are explored for each change.
    pub(super) depth: usize,
    pub(super) world: World,
    pub(super) events: Vec<Event>,
    /// Whether calls fail, answers are lost and processes are killed.
    pub(super) faults: bool,
    pub(super) sabotage: Option<Sabotage>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Event(Event),
    /// A controller reconciles, and at these choices, the option with this number is taken.
    Reconcile(usize, Vec<(usize, usize)>),
}

/// A schedule that takes the first option everywhere, except at the given choices.
struct Script<'s> {
    scenario: &'s Scenario,
    deviations: &'s [(usize, usize)],
    /// The number of options at each choice so far.
    options: Vec<usize>,
    /// What was chosen, if it is to be shown.
    shown: Option<String>,
}

impl Schedule for Script<'_> {
    fn next(&mut self, world: &World, choices: Choices<'_>) -> Choice {
        if choices.waiting.kind == CallKind::Local {
            return Choice::Answer(Answer::Given);
        }
        let at = self.options.len();
        let deviation = self.deviations.iter().find(|(choice, _)| *choice == at);
        let last = self
            .deviations
            .last()
            .is_some_and(|(choice, _)| *choice > at);
        // Before the last deviation, nobody asks for the number.
        let (chosen, number) = match deviation {
            Some((_, option)) => {
                let all = self.scenario.options(world, choices);
                (all.get(*option).copied(), all.len())
            }
            None if last => (None, 1),
            None => (None, self.scenario.options(world, choices).len()),
        };
        self.options.push(number);
        let chosen = chosen.unwrap_or(Choice::Answer(Answer::Given));
        if let Some(shown) = &mut self.shown {
            let who = ["", "the second controller: "][choices.who];
            let name = &choices.waiting.name;
            _ = writeln!(shown, "       {who}{name}: {chosen}");
        }
        chosen
    }
}

impl Scenario {
    /// Returns what can happen at a call. The first is that it is answered.
    fn options(&self, world: &World, choices: Choices<'_>) -> Vec<Choice> {
        let refused = |fault| Choice::Answer(Answer::Refused(fault));
        let lost = |late| Choice::Answer(Answer::Lost { late });
        let mut all = vec![Choice::Answer(Answer::Given)];
        if self.faults {
            all.extend([refused(Fault::Fails), Choice::Kill]);
            // Of the reads, only this one is treated apart if it is not allowed.
            let is_treated_apart = choices.waiting.name == "list Jobs";
            if is_treated_apart || choices.waiting.kind != CallKind::Read {
                all.push(refused(Fault::Refused));
            }
            if choices.waiting.kind != CallKind::Read {
                all.extend([lost(false), lost(true)]);
            }
        }
        if self.world.two && !choices.other_has_ended {
            all.push(Choice::Switch);
        }
        let is_apart = |event: &Event| {
            // A restart of the controller itself is a kill.
            !matches!(event, Event::Restarts(who) if *who == choices.who) && world.can(*event)
        };
        let events = self.events.iter().copied().filter(is_apart);
        all.extend(events.map(Choice::Event));
        all
    }

    /// Takes a step. Returns the number of options at each choice.
    pub(super) fn take(
        &self,
        world: &mut World,
        step: &Step,
        shown: &mut Option<String>,
    ) -> Vec<usize> {
        let options = match step {
            Step::Event(event) => {
                if world.can(*event) {
                    world.happens(*event);
                }
                if let Some(shown) = shown {
                    _ = writeln!(shown, "{event}");
                }
                Vec::new()
            }
            Step::Reconcile(who, deviations) => {
                let mut script = Script {
                    scenario: self,
                    deviations,
                    options: Vec::new(),
                    shown: shown.as_ref().map(|_| String::new()),
                };
                world.run(*who, self.sabotage, &mut script);
                if let Some(shown) = shown {
                    let who = ["the controller", "the second controller"][*who];
                    let calls = script.shown.unwrap_or_default();
                    _ = write!(shown, "{who} reconciles\n{calls}");
                }
                script.options
            }
        };
        world.renumber();
        options
    }

    /// Checks a world: no guarantee was broken, and it gets to where it should be.
    pub(super) fn check(&self, world: &World, settled: &mut HashSet<u64>) -> Result<(), String> {
        if let Some(broken) = &world.broken {
            return Err(broken.clone());
        }
        for leader in 0..if self.world.two { 2 } else { 1 } {
            let still = spec::settle(world, (leader, self.sabotage), false)
                .map_err(|why| format!("{why}, once nothing else happens"))?;
            let mut mended = still;
            spec::mend(&mut mended);
            mended.renumber();
            if settled.insert(mended.key() ^ leader as u64) {
                spec::settle(&mended, (leader, self.sabotage), true)
                    .map_err(|why| format!("{why}, once all causes are removed"))?;
            }
        }
        Ok(())
    }

    /// Returns the trace of steps, and whether they break the guarantee.
    pub(super) fn trace(&self, steps: &[Step]) -> (String, Option<String>) {
        let mut world = self.world.clone();
        let mut text = String::new();
        for (number, step) in steps.iter().enumerate() {
            let mut shown = Some(format!("  {:>2}. ", number + 1));
            self.take(&mut world, step, &mut shown);
            text += &shown.unwrap_or_default();
            if world.broken.is_some() {
                break;
            }
        }
        let broken = self.check(&world, &mut HashSet::new()).err();
        (text, broken)
    }
}

/// A sequence of steps after which a guarantee does not hold.
pub(super) struct Counterexample {
    pub(super) guarantee: String,
    pub(super) steps: Vec<Step>,
    trace: String,
}

impl Counterexample {
    pub(super) fn new(scenario: &Scenario, guarantee: String, steps: Vec<Step>) -> Self {
        let (trace, _) = scenario.trace(&steps);
        let guarantee = format!("{}: {guarantee}", scenario.name);
        Self {
            guarantee,
            steps,
            trace,
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{:?}", self.guarantee, self.trace, self.steps)
    }
}

/// What a search has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// The calls that were made.
    pub(super) calls: BTreeSet<String>,
}

/// A world that was found, how, and from which.
struct Found {
    world: World,
    from: usize,
    step: Option<Step>,
}

/// A breadth-first search.
struct Search<'s> {
    scenario: &'s Scenario,
    /// The worlds that were found, and the fewest events and deviations that they need.
    known: HashMap<u64, usize>,
    settled: HashSet<u64>,
    found: Vec<Found>,
    /// The worlds that were found with each number of events and deviations.
    by_cost: Vec<Vec<usize>>,
    seen: Seen,
}

/// Explores all that can happen with at most that many events and deviations, of which at most two are in the same reconcile.
pub(super) fn explore(scenario: &Scenario, depth: usize) -> Result<Seen, Counterexample> {
    let mut search = Search {
        scenario,
        known: HashMap::new(),
        settled: HashSet::new(),
        found: Vec::new(),
        by_cost: vec![Vec::new(); depth + 1],
        seen: Seen::default(),
    };
    let mut world = scenario.world.clone();
    world.renumber();
    search.note(world, None, 0, 0)?;
    for cost in 0..=depth {
        let mut next = 0;
        while let Some(at) = search.by_cost[cost].get(next).copied() {
            search.expand(at, cost, depth)?;
            next += 1;
        }
        // They are only needed for traces.
        for at in &search.by_cost[cost] {
            search.found[*at].world = scenario.world.clone();
        }
    }
    search.seen.states = search.known.len();
    Ok(search.seen)
}

impl Search<'_> {
    fn expand(&mut self, at: usize, cost: usize, depth: usize) -> Result<(), Counterexample> {
        for who in 0..if self.scenario.world.two { 2 } else { 1 } {
            let choices = self.take(at, Step::Reconcile(who, Vec::new()), cost)?;
            if cost < depth {
                self.deviate(at, who, &[], &choices, (cost, depth))?;
            }
        }
        if cost < depth {
            for event in &self.scenario.events {
                if self.found[at].world.can(*event) {
                    self.take(at, Step::Event(*event), cost + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Takes each other option at each choice after the last deviation.
    fn deviate(
        &mut self,
        at: usize,
        who: usize,
        before: &[(usize, usize)],
        choices: &[usize],
        (cost, depth): (usize, usize),
    ) -> Result<(), Counterexample> {
        let first = before.last().map_or(0, |(choice, _)| choice + 1);
        for (choice, options) in choices.iter().enumerate().skip(first) {
            for option in 1..*options {
                let mut deviations = before.to_vec();
                deviations.push((choice, option));
                let step = Step::Reconcile(who, deviations.clone());
                let choices = self.take(at, step, cost + 1)?;
                if cost + 1 < depth && deviations.len() < 2 {
                    self.deviate(at, who, &deviations, &choices, (cost + 1, depth))?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, at: usize, step: Step, cost: usize) -> Result<Vec<usize>, Counterexample> {
        self.seen.steps += 1;
        let mut world = self.found[at].world.clone();
        let choices = self.scenario.take(&mut world, &step, &mut None);
        for call in &world.done {
            if !self.seen.calls.contains(call) {
                self.seen.calls.insert(call.clone());
            }
        }
        self.note(world, Some(step), at, cost)?;
        Ok(choices)
    }

    /// Checks a world, unless it is known.
    fn note(
        &mut self,
        world: World,
        step: Option<Step>,
        from: usize,
        cost: usize,
    ) -> Result<(), Counterexample> {
        let known = self.known.get(&world.key()).copied();
        if world.broken.is_none() && known.is_some_and(|known| known <= cost) {
            return Ok(());
        }
        self.known.insert(world.key(), cost);
        let checked = match known {
            // The first is checked with its first reconcile.
            None if step.is_none() => Ok(()),
            None => self.scenario.check(&world, &mut self.settled),
            Some(_) => world.broken.clone().map_or(Ok(()), Err),
        };
        self.by_cost[cost].push(self.found.len());
        self.found.push(Found { world, from, step });
        checked.map_err(|guarantee| {
            Counterexample::new(self.scenario, guarantee, self.path(self.found.len() - 1))
        })
    }

    fn path(&self, mut at: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = &self.found[at].step {
            steps.push(step.clone());
            at = self.found[at].from;
        }
        steps.reverse();
        steps
    }
}

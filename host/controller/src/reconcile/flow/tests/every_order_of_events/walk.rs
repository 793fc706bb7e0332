//! Long random walks, beyond the depth of the search.

use std::collections::{BTreeSet, HashSet};

use super::{
    super::world::World,
    search::{Counterexample, Scenario, Seen, Step},
};

/// Walks at random for that many steps, and begins anew from time to time.
pub(super) fn walk(scenario: &Scenario, seed: u64, steps: usize) -> Result<Seen, Counterexample> {
    /// The steps of a walk, of which many reconcile.
    const LENGTH: usize = 60;
    /// How often a step is checked for where the TrainJob gets to from there.
    const CHECKED: u64 = 4;

    let mut random = fastrand::Rng::with_seed(seed);
    let mut known = HashSet::new();
    for _ in 0..steps.div_ceil(LENGTH) {
        let (mut world, mut taken) = (scenario.world.clone(), Vec::new());
        for _ in 0..LENGTH {
            let step = random_step(scenario, &world, &mut random);
            scenario.take(&mut world, &step, &mut None);
            taken.push(step);
            let is_new = known.insert(world.key());
            if world.broken.is_some() || is_new && random.u64(0..CHECKED) == 0 {
                scenario
                    .check(&world, &mut HashSet::new())
                    .map_err(|guarantee| shortened(scenario, guarantee, taken.clone()))?;
            }
        }
    }
    Ok(Seen {
        states: known.len(),
        steps,
        calls: BTreeSet::new(),
    })
}

fn random_step(scenario: &Scenario, world: &World, random: &mut fastrand::Rng) -> Step {
    let events = scenario.events.iter().copied();
    let events: Vec<_> = events.filter(|event| world.can(*event)).collect();
    if random.bool() && !events.is_empty() {
        return Step::Event(events[random.usize(..events.len())]);
    }
    let who = if scenario.world.two {
        random.usize(..2)
    } else {
        0
    };
    let deviations = (0..random.usize(..3)).map(|_| (random.usize(..16), random.usize(1..28)));
    let mut deviations: Vec<_> = deviations.collect();
    deviations.sort_unstable();
    Step::Reconcile(who, deviations)
}

/// Leaves out steps and deviations that are not needed to break a guarantee.
fn shortened(scenario: &Scenario, mut guarantee: String, mut steps: Vec<Step>) -> Counterexample {
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        let left = fewer.remove(at);
        let mut calmer = steps.clone();
        if let Step::Reconcile(who, _) = left {
            calmer[at] = Step::Reconcile(who, Vec::new());
        }
        for shorter in [fewer, calmer] {
            if shorter != steps
                && let (_, Some(broken)) = scenario.trace(&shorter)
            {
                (guarantee, steps) = (broken, shorter);
                at = at.min(steps.len());
                break;
            }
        }
    }
    Counterexample::new(scenario, guarantee, steps)
}

//! The way of one resolved TrainJob through its plugins.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_model::{
    lookup::{LookupAnswer, LookupKey},
    plugin::{Plugin, PluginId},
    policy::{Phase, Policy},
    session::Session,
};

use crate::problem::Problem;

/// Calls of one phase of one plugin until all that it asks for is at hand.
const MAX_LOOKUP_ROUNDS: usize = 16;

/// Calls of one phase of one plugin while the host is busy.
const MAX_BUSY_TRIES: usize = 3;

/// Where the objects come from that plugins ask for.
pub trait Fetch: Sync {
    /// The answer; none where the object does not exist or was not given.
    fn fetch(&self, namespace: &str, key: &LookupKey) -> Option<LookupAnswer>;
}

/// A plugin of a plan, with what it is called with.
pub(crate) struct Step<'a> {
    pub(crate) policy: &'a dyn Policy,
    pub(crate) config: Arc<Value>,
    /// Its place among the plan's plugins sorted by name.
    pub(crate) rank: u16,
}

impl Step<'_> {
    fn plugin(&self) -> &Plugin {
        self.policy.plugin()
    }
}

/// The ranks of plugins: their places among themselves sorted by name.
pub(crate) fn ranks<'a>(ids: impl Iterator<Item = &'a PluginId>) -> BTreeMap<Arc<str>, u16> {
    let mut names: Vec<_> = ids.map(|id| id.name.clone()).collect();
    names.sort();
    names.into_iter().zip(0u16..).collect()
}

/// Runs the plan's plugins through one phase.
///
/// # Errors
/// In transform and build the first failure, since what follows would stand on what is missing; in check all.
pub(crate) fn run(
    session: &mut Session,
    phase: Phase,
    plan: &[Step<'_>],
    namespace: &str,
    fetch: &dyn Fetch,
) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for step in plan.iter().filter(|step| step.plugin().manifest.has(phase)) {
        match call(session, phase, step, namespace, fetch) {
            Ok(()) => {}
            Err(problem) if phase == Phase::Check => problems.push(*problem),
            Err(problem) => return Err(vec![*problem]),
        }
    }
    problems.extend(
        session
            .errors()
            .iter()
            .filter(|said| said.phase == phase)
            .map(Problem::from),
    );
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Calls until the plugin has all that it asks for.
fn call(
    session: &mut Session,
    phase: Phase,
    step: &Step<'_>,
    namespace: &str,
    fetch: &dyn Fetch,
) -> Result<(), Box<Problem>> {
    let (mut rounds, mut busy) = (0, 0);
    loop {
        let error = match session.call(step.policy, phase, step.rank, step.config.clone()) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if error.cause.is_transient() && busy + 1 < MAX_BUSY_TRIES {
            busy += 1;
            continue;
        }
        let Some(key) = error.missing().cloned() else {
            return Err(Box::new(match error.cause {
                trainyard_model::policy::Ended::Refused(failure) => Problem::Refused {
                    plugin: error.plugin,
                    phase,
                    failure,
                },
                _ => Problem::Call(error),
            }));
        };
        rounds += 1;
        if rounds == MAX_LOOKUP_ROUNDS {
            return Err(Box::new(Problem::TooManyLookups {
                plugin: error.plugin,
                phase,
                rounds,
            }));
        }
        match fetch.fetch(namespace, &key) {
            Some(answer) => session.learn(key, answer),
            None => {
                return Err(Box::new(Problem::NotGiven {
                    plugin: error.plugin,
                    phase,
                    key,
                    namespace: namespace.to_owned(),
                }));
            }
        }
    }
}

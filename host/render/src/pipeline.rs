//! The way of one resolved TrainJob through its plugins.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_model::{
    plugin::{Plugin, PluginId},
    policy::{Ended, Phase, Policy},
    session::Session,
};

use crate::problem::Problem;

/// The most objects that may be looked up for one TrainJob.
const MAX_LOOKUPS: usize = 64;

/// Calls of one phase of one plugin while the host is busy.
const MAX_BUSY_TRIES: usize = 3;

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
) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for step in plan.iter().filter(|step| step.plugin().manifest.has(phase)) {
        match call(session, phase, step, namespace) {
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

/// Calls once, or again while the host is busy.
fn call(
    session: &mut Session,
    phase: Phase,
    step: &Step<'_>,
    namespace: &str,
) -> Result<(), Box<Problem>> {
    let mut busy = 0;
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
                Ended::Refused(failure) => Problem::Refused {
                    plugin: error.plugin,
                    phase,
                    failure,
                },
                _ => Problem::Call(error),
            }));
        };
        let plugin = error.plugin;
        return Err(Box::new(if session.lookups().len() < MAX_LOOKUPS {
            Problem::Missing {
                plugin,
                phase,
                key,
                namespace: namespace.to_owned(),
            }
        } else {
            Problem::TooManyLookups {
                plugin,
                phase,
                key,
                most: MAX_LOOKUPS,
            }
        }));
    }
}

/// Writes what the plugins logged to this program's own log, at their levels.
pub(crate) fn log(session: &Session, namespace: &str) {
    for logged in session.log() {
        let (plugin, phase, line) = (&logged.plugin, logged.phase, &logged.line.line);
        let job = &*session.job().name;
        macro_rules! emit {
            ($level:ident) => {
                tracing::$level!(target: "trainyard::plugin", %plugin, %phase, namespace, job, "{line}")
            };
        }
        match logged.line.level.as_str() {
            "error" => emit!(error),
            "warn" => emit!(warn),
            "info" => emit!(info),
            "debug" => emit!(debug),
            _ => emit!(trace),
        }
    }
}

//! The way of one resolved TrainJob through its plugins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use trainyard_model::{
    deadline::Deadline,
    plan::Generation,
    plugin::{Plugin, PluginId},
    policy::{CallFailure, Phase, Policy},
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

/// What the plugins of one TrainJob are called with.
pub(crate) struct Calls<'a> {
    /// The plugins in their order.
    pub(crate) plan: &'a [Step<'a>],
    /// Where their order comes from.
    pub(crate) generation: &'a Generation,
    pub(crate) namespace: &'a str,
    /// By when all of it has to be done.
    pub(crate) deadline: &'a Deadline,
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
/// What each plugin fails with, by plugin. In transform, a plugin that is ordered after one that failed is not called: what it
/// stands on is missing. Every other plugin is, so that the errors do not depend on which legal order the plan took; only a host
/// that is too busy ends the phase at once.
pub(crate) fn run(
    session: &mut Session,
    phase: Phase,
    calls: &Calls<'_>,
) -> Result<(), Vec<Problem>> {
    let mut problems: Vec<(Arc<str>, Problem)> = Vec::new();
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    let steps = calls.plan.iter();
    for step in steps.filter(|step| step.plugin().manifest.has(phase)) {
        let name = &step.plugin().id.name;
        if phase == Phase::Transform && calls.generation.is_after_any(name, &failed) {
            failed.insert(name);
            continue;
        }
        let Err(problem) = call(session, phase, step, calls) else {
            continue;
        };
        let is_busy = problem.is_transient();
        problems.push((name.clone(), *problem));
        failed.insert(name);
        if is_busy {
            break;
        }
    }
    let said = session.errors().into_iter();
    let said = said.filter(|said| said.phase == phase);
    problems.extend(said.map(|said| (said.plugin.name.clone(), Problem::from(said))));
    problems.sort_by(|(a, _), (b, _)| a.cmp(b));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into_iter().map(|(_, problem)| problem).collect())
    }
}

/// What the plugins refuse of a TrainJob that is refused in any case, so that its author learns of all at once. Nothing else counts:
/// calls may fail for what is wrong already, and lookups would be for nothing.
pub(crate) fn refusals(session: &mut Session, calls: &Calls<'_>) -> Vec<Problem> {
    let ended = run(session, Phase::Transform, calls);
    let problems = ended.err().unwrap_or_default().into_iter();
    let is_refusal = |problem: &Problem| matches!(problem, Problem::Refused { .. });
    problems.filter(is_refusal).collect()
}

/// Calls once, or again while the host is busy.
fn call(
    session: &mut Session,
    phase: Phase,
    step: &Step<'_>,
    calls: &Calls<'_>,
) -> Result<(), Box<Problem>> {
    let mut busy = 0;
    loop {
        if let Err(overdue) = calls.deadline.check() {
            let step = format!(
                "plugin {} was about to be called in {phase}",
                step.plugin().id
            );
            return Err(Box::new(Problem::Overdue { overdue, step }));
        }
        let error = match session.call(step.policy, phase, step.rank, step.config.clone()) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if error.cause.is_worth_another_call() && busy + 1 < MAX_BUSY_TRIES {
            busy += 1;
            continue;
        }
        let Some(key) = error.missing().cloned() else {
            return Err(Box::new(match error.cause {
                CallFailure::Refused(failure) => Problem::refused(&error.plugin, phase, &failure),
                _ => Problem::Call(error),
            }));
        };
        let plugin = error.plugin;
        return Err(Box::new(if session.lookups().len() < MAX_LOOKUPS {
            Problem::Missing {
                plugin,
                phase,
                key,
                namespace: calls.namespace.to_owned(),
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

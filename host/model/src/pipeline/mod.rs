//! Runs the plugins of one resolved TrainJob, in a rendering and in the SDK's mock host.
//!
//! The active plugins have an order, the plan ([`crate::plan`]). A [`Stage`] is a plugin of the plan, with what its calls need. In each
//! [`Phase`], all stages run in the order of the plan. A call is one phase of one stage.

mod clash;
mod stopped;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use thiserror::Error;

pub use self::{
    clash::{Clash, clashing_objects, clashing_writes},
    stopped::{Needs, PendingLookup, Stopped, with_answers},
};
use crate::{
    deadline::{Deadline, Overdue},
    lookup::LookupKey,
    plan::Generation,
    plugin::{Phase, Plugin},
    plugin_info::PluginId,
    session::{CallError, Diagnostic, Session},
};

/// The most objects that may be looked up for one TrainJob.
const MAX_LOOKUPS: usize = 64;

/// The most attempts of a call while the host is busy.
const MAX_BUSY_TRIES: usize = 3;

/// A plugin of a plan, with its inputs.
pub struct Stage<'a> {
    /// The plugin.
    pub plugin: &'a dyn Plugin,
    /// Its complete configuration.
    pub config: Arc<Value>,
    /// Its position among the plan's plugins sorted by name.
    pub rank: u16,
}

/// The plan of one TrainJob, ready to run.
pub struct Pipeline<'a> {
    /// The stages, in the order of the plan.
    pub plan: &'a [Stage<'a>],
    /// The generation that ordered them.
    pub generation: &'a Generation,
    /// The deadline for all of them.
    pub deadline: &'a Deadline,
}

/// Why a phase of a plugin failed.
#[derive(Debug, Error)]
pub enum PhaseError {
    /// The call failed, or returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The plugin reported an error in the TrainJob with `context.error`.
    #[error("plugin {} in {}: {}", .0.plugin, .0.phase, .0.failure)]
    Reported(Diagnostic),
    /// Plugins look up too many objects.
    #[error(transparent)]
    TooManyLookups(#[from] TooManyLookups),
    /// The deadline passed before the call.
    #[error("plugin {plugin} in {phase}: {overdue}")]
    Overdue {
        /// The deadline.
        overdue: Overdue,
        /// The plugin that would have been called next.
        plugin: PluginId,
        /// The phase.
        phase: Phase,
    },
}

/// The lookup that exceeds the limit of a TrainJob.
#[derive(Debug, Error)]
#[error(
    "plugin {plugin} in {phase} looks up {key}, but the limit of {most} lookups per TrainJob is reached"
)]
pub struct TooManyLookups {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase.
    pub phase: Phase,
    /// The lookup.
    pub key: LookupKey,
    /// The limit.
    pub most: usize,
}

impl PhaseError {
    /// Whether the host was too busy.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::Call(error) => error.cause.is_transient(),
            Self::Reported(_) | Self::TooManyLookups(_) => false,
        }
    }
}

/// Why a plugin's call failed, or has to be repeated.
enum CallStopped {
    Needs(Box<PendingLookup>),
    Error(Box<PhaseError>),
}

/// Returns the stages of a plan: its plugins with their configurations, in order.
pub fn stages<'a>(plan: impl IntoIterator<Item = (&'a dyn Plugin, Arc<Value>)>) -> Vec<Stage<'a>> {
    let plan: Vec<_> = plan.into_iter().collect();
    let mut names: Vec<_> = plan
        .iter()
        .map(|(plugin, _)| plugin.info().id.name.clone())
        .collect();
    names.sort();
    let ranks: BTreeMap<_, _> = names.into_iter().zip(0u16..).collect();
    let stage = |(plugin, config): (&'a dyn Plugin, _)| {
        let rank = *ranks.get(&plugin.info().id.name)?;
        Some(Stage {
            plugin,
            config,
            rank,
        })
    };
    plan.into_iter().filter_map(stage).collect()
}

impl Pipeline<'_> {
    /// Runs the plugins through one phase.
    ///
    /// # Errors
    /// Why each plugin failed, ordered by plugin, and the lookups without an answer. In transform, a plugin that is ordered after one that
    /// failed is not called, because what it depends on is missing. Every other plugin is called, so the errors do not depend on which
    /// legal order the plan has. If the host is too busy, the phase ends immediately.
    pub fn run(&self, session: &mut Session, phase: Phase) -> Result<(), Stopped<PhaseError>> {
        let mut lookups: Vec<PendingLookup> = Vec::new();
        let mut problems: Vec<(Arc<str>, PhaseError)> = Vec::new();
        let mut failed: BTreeSet<&str> = BTreeSet::new();
        let stages = self.plan.iter();
        for stage in stages.filter(|stage| stage.plugin.info().manifest.has(phase)) {
            let name = &stage.plugin.info().id.name;
            if phase == Phase::Transform && self.generation.is_after_any(name, &failed) {
                failed.insert(name);
                continue;
            }
            match self.call(session, phase, stage) {
                Ok(()) => continue,
                Err(CallStopped::Needs(lookup)) => lookups.push(*lookup),
                Err(CallStopped::Error(error)) => {
                    let is_busy = error.is_transient();
                    problems.push((name.clone(), *error));
                    if is_busy {
                        break;
                    }
                }
            }
            failed.insert(name);
        }
        let reported = session.errors().into_iter();
        let reported = reported.filter(|said| said.phase == phase).cloned();
        problems
            .extend(reported.map(|said| (said.plugin.name.clone(), PhaseError::Reported(said))));
        problems.sort_by(|(a, _), (b, _)| a.cmp(b));
        lookups.sort_by(|a, b| a.plugin.name.cmp(&b.plugin.name));
        let problems: Vec<_> = problems.into_iter().map(|(_, error)| error).collect();
        match (lookups.is_empty(), problems.is_empty()) {
            (false, _) => Err(Stopped::Needs(Needs { lookups, problems })),
            (true, false) => Err(Stopped::Refused(problems)),
            (true, true) => Ok(()),
        }
    }

    /// Calls a phase of a plugin, and repeats the call while the host is busy.
    fn call(
        &self,
        session: &mut Session,
        phase: Phase,
        stage: &Stage<'_>,
    ) -> Result<(), CallStopped> {
        let mut busy = 0;
        let error = loop {
            if let Err(overdue) = self.deadline.check() {
                let plugin = stage.plugin.info().id.clone();
                return Err(CallStopped::Error(Box::new(PhaseError::Overdue {
                    overdue,
                    plugin,
                    phase,
                })));
            }
            match session.call(stage.plugin, phase, stage.rank, stage.config.clone()) {
                Ok(()) => return Ok(()),
                Err(error) if error.cause.is_retryable_now() && busy + 1 < MAX_BUSY_TRIES => {
                    busy += 1;
                }
                Err(error) => break error,
            }
        };
        let Some(key) = error.missing().cloned() else {
            return Err(CallStopped::Error(Box::new(PhaseError::Call(error))));
        };
        let plugin = error.plugin;
        Err(if session.lookups().len() < MAX_LOOKUPS {
            CallStopped::Needs(Box::new(PendingLookup {
                plugin,
                phase,
                key,
                namespace: session.job().namespace.clone(),
            }))
        } else {
            let error = TooManyLookups {
                plugin,
                phase,
                key,
                most: MAX_LOOKUPS,
            };
            CallStopped::Error(Box::new(error.into()))
        })
    }
}

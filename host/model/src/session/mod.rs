//! One TrainJob's way through the plugins: calls, what they commit, and what is left of it.

mod clash;
mod own;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use thiserror::Error;

pub use self::{
    clash::{DuplicateObject, WriteConflict},
    own::MissingObject,
};
use crate::{
    call::{Call, CallInputs, CallResult, Kept, LogLine, OwnDataUse, Write},
    facts::Facts,
    job::Job,
    lookup::{LookupAnswer, LookupKey, Lookups, Reads},
    object::EmittedObject,
    plugin::PluginId,
    policy::{CallFailure, CallOutcome, Phase, Policy},
    record::{ContainerId, Record},
    text::clean,
    value::Failure,
};

/// The committed writes of one call.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The plugin.
    pub plugin: PluginId,
    /// Its writes, the first one first.
    pub writes: Vec<Write>,
}

/// An object with the plugin that emitted it.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The plugin.
    pub plugin: PluginId,
    /// The object.
    pub object: EmittedObject,
}

/// A sentence of a plugin for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase in which it said so.
    pub phase: Phase,
    /// The sentence.
    pub failure: Failure,
}

/// A line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase in which it did.
    pub phase: Phase,
    /// The line.
    pub line: LogLine,
}

/// A call that counts for nothing, with everything that is known of it. A cause may hold the guest's own texts, as the
/// key of a write: they are cleaned and cut.
#[derive(Debug, Error)]
#[error("plugin {plugin} in {phase}: {}", clean(&cause.to_string()))]
pub struct CallError {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase.
    pub phase: Phase,
    /// Why.
    pub cause: CallFailure,
}

impl CallError {
    /// The object that the call needs before it can be made again.
    #[must_use]
    pub const fn missing(&self) -> Option<&LookupKey> {
        match &self.cause {
            CallFailure::Missing(key) => Some(key),
            _ => None,
        }
    }
}

/// A TrainJob between resolve and assemble.
#[derive(Clone, Debug)]
pub struct Session {
    job: Arc<Job>,
    base: Arc<Record>,
    record: Record,
    lookups: Arc<Lookups>,
    committed: Vec<Committed>,
    emitted: Vec<Emitted>,
    on_own_data: Vec<(PluginId, OwnDataUse)>,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
    log: Vec<Logged>,
    reads: Reads,
    kept: BTreeMap<Arc<str>, Arc<Kept>>,
    facts: BTreeSet<String>,
}

impl Session {
    /// A session over the record as resolve left it.
    #[must_use]
    pub fn new(job: Arc<Job>, base: Record) -> Self {
        Self {
            job,
            record: base.clone(),
            base: Arc::new(base),
            lookups: Arc::default(),
            committed: Vec::new(),
            emitted: Vec::new(),
            on_own_data: Vec::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
            log: Vec::new(),
            reads: Reads::new(),
            kept: BTreeMap::new(),
            facts: BTreeSet::new(),
        }
    }

    /// The same session with answers to lookups.
    #[must_use]
    pub fn knowing(mut self, lookups: Arc<Lookups>) -> Self {
        self.lookups = lookups;
        self
    }

    /// Calls one phase of a plugin. What it wrote counts if it returns `Ok`, and not at all otherwise.
    ///
    /// `rank` is the plugin's place among the plan's plugins sorted by name, `config` its complete configuration.
    ///
    /// # Errors
    /// How the call ended. After [`CallError::missing`] the call can be made again once the answer was [`Self::learn`]ed.
    pub fn call(
        &mut self,
        policy: &dyn Policy,
        phase: Phase,
        rank: u16,
        config: Arc<Value>,
    ) -> Result<(), Box<CallError>> {
        let inputs = CallInputs {
            plugin: Arc::clone(policy.plugin()),
            rank,
            config,
            job: self.job.clone(),
            base: self.base.clone(),
            lookups: self.lookups.clone(),
            kept: self.kept(&policy.plugin().id.name),
        };
        // The trait gives the call back in every case, and the record with it.
        let record = std::mem::take(&mut self.record);
        let CallOutcome { call, end, .. } =
            policy.run(phase, Box::new(Call::new(phase, record, inputs)));
        self.settle(policy.plugin().id.clone(), phase, call.finish(), end)
    }

    /// Takes the record back, with what the call wrote or without it, and keeps what it said.
    fn settle(
        &mut self,
        plugin: PluginId,
        phase: Phase,
        mut result: CallResult,
        end: Result<(), CallFailure>,
    ) -> Result<(), Box<CallError>> {
        // What is said in a call that is made again would be said twice.
        if !end.as_ref().is_err_and(CallFailure::is_made_again) {
            self.log.extend(result.log.into_iter().map(|line| Logged {
                plugin: plugin.clone(),
                phase,
                line,
            }));
        }
        for (key, pointers) in result.reads {
            self.reads.entry(key).or_default().extend(pointers);
        }
        self.facts.extend(result.facts);
        if let Err(cause) = end {
            let changes = result.writes.into_iter().map(|write| write.change);
            result.record.undo(changes);
            result.record.forget_containers(result.containers_before);
            self.record = result.record;
            return Err(Box::new(CallError {
                plugin,
                phase,
                cause,
            }));
        }
        self.record = result.record;
        if !result.kept.is_empty() {
            self.kept.insert(plugin.name.clone(), result.kept);
        }
        let said = |failure| Diagnostic {
            plugin: plugin.clone(),
            phase,
            failure,
        };
        self.warnings.extend(result.warnings.into_iter().map(said));
        self.errors.extend(result.errors.into_iter().map(said));
        self.emitted
            .extend(result.objects.into_iter().map(|object| Emitted {
                plugin: plugin.clone(),
                object,
            }));
        let on_own_data = result.on_own_data.into_iter();
        self.on_own_data
            .extend(on_own_data.map(|put| (plugin.clone(), put)));
        if !result.writes.is_empty() {
            self.committed.push(Committed {
                plugin,
                writes: result.writes,
            });
        }
        Ok(())
    }

    /// Puts the init containers of a pod set in the order of the pod's list, before build.
    pub fn place_init_containers(&mut self, pod_set: u32, order: &[ContainerId]) {
        if let Some(set) = self.record.pod_sets.get_mut(pod_set as usize) {
            set.init_order = Some(order.into());
        }
    }

    /// Keeps the answer to a lookup for this TrainJob's calls.
    pub fn learn(&mut self, key: LookupKey, answer: LookupAnswer) {
        Arc::make_mut(&mut self.lookups).insert(key, answer);
    }

    /// The TrainJob.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The record with all that counts.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The record as resolve left it.
    #[must_use]
    pub fn base(&self) -> &Record {
        &self.base
    }

    /// Returns what the plugins wrote, in the order of the plan.
    #[must_use]
    pub fn committed(&self) -> &[Committed] {
        &self.committed
    }

    /// Takes what the plugins wrote, once nothing is checked by it any more.
    pub fn take_committed(&mut self) -> Vec<Committed> {
        std::mem::take(&mut self.committed)
    }

    /// The objects that the plugins emitted.
    #[must_use]
    pub fn emitted(&self) -> &[Emitted] {
        &self.emitted
    }

    /// What the plugins warned of, by phase and then by plugin, whatever order they ran in.
    #[must_use]
    pub fn warnings(&self) -> Vec<&Diagnostic> {
        in_one_order(&self.warnings)
    }

    /// What the plugins refuse the TrainJob for, in the same order.
    #[must_use]
    pub fn errors(&self) -> Vec<&Diagnostic> {
        in_one_order(&self.errors)
    }

    /// What the plugins logged, also in calls that failed; not in those that are made again.
    #[must_use]
    pub fn log(&self) -> &[Logged] {
        &self.log
    }

    /// What was read of what was asked of the cluster: with it, the same calls can be made again.
    #[must_use]
    pub fn read_lookups(&self) -> Lookups {
        self.lookups.keeping(&self.reads)
    }

    /// The same with all that was read, however large.
    #[must_use]
    pub fn all_read_lookups(&self) -> Lookups {
        self.lookups.keeping_all(&self.reads)
    }

    /// The operator's facts that were read.
    #[must_use]
    pub fn read_facts(&self) -> Facts {
        self.job.facts.only(&self.facts)
    }

    /// The texts that a plugin keeps for its later phases.
    #[must_use]
    pub fn kept(&self, plugin: &str) -> Arc<Kept> {
        self.kept.get(plugin).cloned().unwrap_or_default()
    }

    /// What was asked of the cluster.
    #[must_use]
    pub fn lookups(&self) -> &Lookups {
        &self.lookups
    }
}

/// By phase and then by plugin; what one plugin said in a phase stays as it said it.
fn in_one_order(said: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = said.iter().collect();
    sorted.sort_by(|a, b| (a.phase, &a.plugin).cmp(&(b.phase, &b.plugin)));
    sorted
}

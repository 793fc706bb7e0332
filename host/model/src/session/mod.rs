//! The plugin calls of one TrainJob, with the record, the committed writes and all other results.

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
    call::{Call, CallEffects, CallInputs, KeptTexts, LogLine, OwnDataUse, Write},
    facts::Facts,
    job::Job,
    lookup::{LookupKey, Lookups, Reads},
    object::EmittedObject,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginId,
    record::{ContainerId, Record},
    text::clean,
    value::Failure,
};

/// The committed writes of one call.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The plugin.
    pub plugin: PluginId,
    /// Its writes, in order.
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

/// A warning or error of a plugin for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase.
    pub phase: Phase,
    /// The text, with its field.
    pub failure: Failure,
}

/// A line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase.
    pub phase: Phase,
    /// The line.
    pub line: LogLine,
}

/// A call that failed. The cause may contain texts of the guest, such as the key of a write, so it is cleaned and truncated.
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
    /// The lookup without an answer, if that is why the call ended.
    #[must_use]
    pub const fn missing(&self) -> Option<&LookupKey> {
        match &self.cause {
            CallFailure::Missing(key) => Some(key),
            _ => None,
        }
    }
}

/// The plugin calls of one TrainJob, from resolve to assemble.
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
    kept: BTreeMap<Arc<str>, Arc<KeptTexts>>,
    facts: BTreeSet<String>,
}

impl Session {
    /// Starts a session with the record after resolve.
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

    /// Sets the answers to lookups.
    #[must_use]
    pub fn with_lookups(mut self, lookups: Arc<Lookups>) -> Self {
        self.lookups = lookups;
        self
    }

    /// Calls one phase of a plugin. Its writes are committed if it returns `Ok`, and discarded otherwise.
    ///
    /// `rank` is the plugin's position among the plan's plugins sorted by name, `config` its complete configuration.
    ///
    /// # Errors
    /// Why the call failed. After [`CallError::missing`], the call can be repeated with the answer ([`Self::with_lookups`]).
    pub fn call(
        &mut self,
        plugin: &dyn Plugin,
        phase: Phase,
        rank: u16,
        config: Arc<Value>,
    ) -> Result<(), Box<CallError>> {
        let inputs = CallInputs {
            plugin: Arc::clone(plugin.info()),
            rank,
            config,
            job: self.job.clone(),
            base: self.base.clone(),
            lookups: self.lookups.clone(),
            kept: self.kept(&plugin.info().id.name),
        };
        // The trait returns the call, and with it the record, in every case.
        let record = std::mem::take(&mut self.record);
        let CallOutcome { call, end, .. } =
            plugin.run(phase, Box::new(Call::new(phase, record, inputs)));
        self.finish_call(plugin.info().id.clone(), phase, call.finish(), end)
    }

    /// Takes the record back, with or without the call's writes, and keeps its warnings, errors and log lines.
    fn finish_call(
        &mut self,
        plugin: PluginId,
        phase: Phase,
        mut effects: CallEffects,
        end: Result<(), CallFailure>,
    ) -> Result<(), Box<CallError>> {
        // A call that is repeated would report everything twice.
        if !end.as_ref().is_err_and(CallFailure::is_repeated) {
            self.log.extend(effects.log.into_iter().map(|line| Logged {
                plugin: plugin.clone(),
                phase,
                line,
            }));
        }
        for (key, pointers) in effects.reads {
            self.reads.entry(key).or_default().extend(pointers);
        }
        self.facts.extend(effects.facts);
        if let Err(cause) = end {
            let changes = effects.writes.into_iter().map(|write| write.change);
            effects.record.undo(changes);
            effects.record.forget_containers(effects.containers_before);
            self.record = effects.record;
            return Err(Box::new(CallError {
                plugin,
                phase,
                cause,
            }));
        }
        self.record = effects.record;
        if !effects.kept.is_empty() {
            self.kept.insert(plugin.name.clone(), effects.kept);
        }
        let said = |failure| Diagnostic {
            plugin: plugin.clone(),
            phase,
            failure,
        };
        self.warnings.extend(effects.warnings.into_iter().map(said));
        self.errors.extend(effects.errors.into_iter().map(said));
        self.emitted
            .extend(effects.objects.into_iter().map(|object| Emitted {
                plugin: plugin.clone(),
                object,
            }));
        let on_own_data = effects.on_own_data.into_iter();
        self.on_own_data
            .extend(on_own_data.map(|put| (plugin.clone(), put)));
        if !effects.writes.is_empty() {
            self.committed.push(Committed {
                plugin,
                writes: effects.writes,
            });
        }
        Ok(())
    }

    /// Sets the order of a pod set's init containers, before build.
    pub fn place_init_containers(&mut self, pod_set: u32, order: &[ContainerId]) {
        if let Some(set) = self.record.pod_sets.get_mut(pod_set as usize) {
            set.init_order = Some(order.into());
        }
    }

    /// The TrainJob.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The record, with all committed writes.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The record after resolve, before any plugin.
    #[must_use]
    pub fn base(&self) -> &Record {
        &self.base
    }

    /// The committed writes, in the order of the plan.
    #[must_use]
    pub fn committed(&self) -> &[Committed] {
        &self.committed
    }

    /// Takes the committed writes, after all checks of them.
    pub fn take_committed(&mut self) -> Vec<Committed> {
        std::mem::take(&mut self.committed)
    }

    /// The objects that the plugins emitted.
    #[must_use]
    pub fn emitted(&self) -> &[Emitted] {
        &self.emitted
    }

    /// The warnings, ordered by phase and then by plugin, independent of the order in which plugins ran.
    #[must_use]
    pub fn warnings(&self) -> Vec<&Diagnostic> {
        in_one_order(&self.warnings)
    }

    /// The errors for which plugins refuse the TrainJob, in the same order.
    #[must_use]
    pub fn errors(&self) -> Vec<&Diagnostic> {
        in_one_order(&self.errors)
    }

    /// The log lines of plugins, including those of failed calls, but not those of repeated ones.
    #[must_use]
    pub fn log(&self) -> &[Logged] {
        &self.log
    }

    /// The parts of lookups that were read, with which the same calls can be repeated.
    #[must_use]
    pub fn read_lookups(&self) -> Lookups {
        self.lookups.keeping(&self.reads)
    }

    /// The parts of lookups that were read, including large ones.
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
    pub fn kept(&self, plugin: &str) -> Arc<KeptTexts> {
        self.kept.get(plugin).cloned().unwrap_or_default()
    }

    /// The lookups and their answers.
    #[must_use]
    pub fn lookups(&self) -> &Lookups {
        &self.lookups
    }
}

/// Sorts by phase and then by plugin, and keeps the order within one call.
fn in_one_order(said: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = said.iter().collect();
    sorted.sort_by(|a, b| (a.phase, &a.plugin).cmp(&(b.phase, &b.plugin)));
    sorted
}

//! A call of one phase: everything that a plugin can reach, with a method for each method of the contract.
//!
//! `RESOURCE.METHOD(...)` in `wit/` is `Call::RESOURCE_METHOD(handle, ...)` here. tools/bindings generates everything else that depends
//! on the methods from `wit/` (`make bindings`). Claims, grants and the meter are checked only in these methods, so the same rules apply
//! to sandboxed components and native plugins.

mod access;
mod container;
mod context;
mod document;
mod fault;
mod gang;
mod info;
mod lookups;
mod material;
mod meter;
mod notes;
mod objects;
mod pod_set;
mod raw;
mod transfer;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

pub use self::{
    fault::{Fault, Faulted},
    meter::Meter,
};
use crate::{
    claims::{Access, Variables},
    contract::{Handle, handle},
    job::Job,
    lookup::{Lookups, Reads},
    object::{DataKind, EmittedObject},
    phase::Phase,
    plugin_info::PluginInfo,
    record::{Change, EntryRef, EntryScope, Owner, Record},
    value::Failure,
};

/// The bit of a pod set's or container's handle that marks it as part of the base record.
const BASE: u32 = 1 << 31;

/// The texts that a plugin keeps for its later phases, by key.
pub type KeptTexts = BTreeMap<String, Arc<str>>;

/// A line that a plugin logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// The cleaned text.
    pub line: String,
}

/// A write of a plugin. A committed one becomes an entry of the rendering's journal.
#[derive(Clone, Debug)]
pub struct Write {
    /// The change of the record.
    pub change: Change,
    /// The plugin's reason (`context.because`).
    pub reason: Option<Arc<str>>,
}

/// A volume or env var that refers to a ConfigMap or Secret of the same plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnDataUse {
    /// The volume or env var.
    pub place: EntryRef,
    /// The plugin, as the record knows it.
    pub owner: Owner,
    /// The object's kind.
    pub kind: DataKind,
    /// The name of the object.
    pub name: String,
}

/// The inputs of a call.
#[derive(Debug)]
pub struct CallInputs {
    /// The plugin.
    pub plugin: Arc<PluginInfo>,
    /// Its position among the plan's plugins sorted by name.
    pub rank: u16,
    /// Its configuration in the runtime, with defaults.
    pub config: Arc<Value>,
    /// The TrainJob.
    pub job: Arc<Job>,
    /// The record after resolve, before any plugin.
    pub base: Arc<Record>,
    /// The answers to lookups that the host has.
    pub lookups: Arc<Lookups>,
    /// The texts that the plugin kept in transform.
    pub kept: Arc<KeptTexts>,
}

/// One call.
#[derive(Debug)]
pub struct Call {
    inputs: CallInputs,
    phase: Phase,
    access: Access,
    meter: Meter,
    record: Record,
    writes: Vec<Write>,
    containers_before: u32,
    documents: Vec<document::Document>,
    reads: Reads,
    kept: Arc<KeptTexts>,
    kept_bytes: usize,
    facts: BTreeSet<String>,
    objects: Vec<EmittedObject>,
    on_own_data: Vec<OwnDataUse>,
    requested: material::RequestedMaterial,
    warnings: Vec<Failure>,
    errors: Vec<Failure>,
    log: Vec<LogLine>,
    reason: Option<Arc<str>>,
}

/// What a call did: the changes of the record, and what the plugin emitted and reported.
#[derive(Debug)]
pub struct CallEffects {
    /// The record, with the call's changes.
    pub record: Record,
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// The number of containers before the call.
    pub containers_before: u32,
    /// The objects that it emitted.
    pub objects: Vec<EmittedObject>,
    /// The volumes and env vars that refer to objects which the plugin has to emit.
    pub on_own_data: Vec<OwnDataUse>,
    /// The warnings.
    pub warnings: Vec<Failure>,
    /// The errors for which it refuses the TrainJob.
    pub errors: Vec<Failure>,
    /// The log lines.
    pub log: Vec<LogLine>,
    /// The pointers that it read of looked-up objects.
    pub reads: Reads,
    /// The texts that the plugin has kept.
    pub kept: Arc<KeptTexts>,
    /// The names of the operator's facts that it read.
    pub facts: BTreeSet<String>,
}

/// A pod set or container, of the record or of the base record.
#[derive(Clone, Copy)]
struct Target {
    scope: EntryScope,
    base: bool,
}

impl Call {
    /// The handle that a phase is called with.
    pub const CONTEXT: handle::Context = handle::Context(0);

    /// Starts a call of one phase on the record.
    #[must_use]
    pub fn new(phase: Phase, record: Record, inputs: CallInputs) -> Self {
        let variables = Variables {
            job: inputs.job.name.clone(),
            config: inputs.config.clone(),
        };
        Self {
            phase,
            access: Access::new(inputs.plugin.claims.clone(), variables, &record),
            meter: Meter::new(inputs.plugin.settings.limits),
            containers_before: record.container_ids(),
            kept_bytes: notes::bytes_of(&inputs.kept),
            kept: inputs.kept.clone(),
            facts: BTreeSet::new(),
            inputs,
            record,
            writes: Vec::new(),
            documents: Vec::new(),
            reads: Reads::new(),
            objects: Vec::new(),
            on_own_data: Vec::new(),
            requested: material::RequestedMaterial::default(),
            warnings: Vec::new(),
            errors: Vec::new(),
            log: Vec::new(),
            reason: None,
        }
    }

    /// The TrainJob.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.inputs.job
    }

    /// The plugin that is called.
    #[must_use]
    pub fn plugin(&self) -> &Arc<PluginInfo> {
        &self.inputs.plugin
    }

    /// The phase that is called.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The resources that the call has used so far.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The writes of the call so far.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The claims that the call has used so far. See [`Access::used`].
    #[must_use]
    pub const fn used_claims(&self) -> u128 {
        self.access.used()
    }

    /// Ends the call and returns its effects.
    #[must_use]
    pub fn finish(self) -> CallEffects {
        CallEffects {
            record: self.record,
            writes: self.writes,
            containers_before: self.containers_before,
            objects: self.objects,
            on_own_data: self.on_own_data,
            warnings: self.warnings,
            errors: self.errors,
            log: self.log,
            reads: self.reads,
            kept: self.kept,
            facts: self.facts,
        }
    }

    const fn owner(&self) -> Owner {
        Owner::Plugin(self.inputs.rank)
    }

    fn record_of(&self, base: bool) -> &Record {
        if base {
            &self.inputs.base
        } else {
            &self.record
        }
    }
}

/// A handle of a pod set or container, of the record or of the base record.
trait Numbered: Handle {
    /// The handle of a number.
    fn numbered(number: u32, base: bool) -> Self {
        Self::of(if base { number | BASE } else { number })
    }

    /// The number, and whether it is of the base record.
    fn split(self) -> (u32, bool) {
        (self.number() & !BASE, self.number() & BASE != 0)
    }
}

impl Numbered for handle::PodSet {}
impl Numbered for handle::Container {}

/// Returns an object with one member.
fn object_with(name: &str, value: Value) -> Value {
    [(name, value)].into_iter().collect()
}

/// Ends a call because of an invalid argument.
fn wrong<T>(problem: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Argument(problem.into()))
}

//! One call of one phase: everything that a policy can reach, one method here for each method of the contract.
//!
//! The rule of names: `RESOURCE.METHOD(...)` in `wit/` is `Call::RESOURCE_METHOD(handle, ...)` here, with the handle as
//! the bare number that the guest holds. Claims, grants and the meter are checked in these methods and nowhere else, so
//! that a sandboxed component and a native policy meet the very same rules.

mod container;
mod context;
mod document;
mod fault;
mod info;
mod lookups;
mod meter;
mod objects;
mod pod_set;

use std::sync::Arc;

use serde_json::Value;

pub use self::{
    fault::{Fault, Faulted},
    meter::Meter,
};
use crate::{
    claims::{Access, Grant, Touch, Variables},
    job::Job,
    lookup::Lookups,
    object::Object,
    plugin::Plugin,
    policy::Phase,
    record::{Change, ContainerId, Datum, Field, Owner, Place, PlaceScope, Record},
    value::Failure,
};

/// The bit of a pod set's or container's handle that says it is one of the base record.
const BASE: u32 = 1 << 31;

/// A line that a plugin logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// The cleaned text.
    pub line: String,
}

/// What a call is made of.
#[derive(Debug)]
pub struct CallInputs {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Its place among the plan's plugins sorted by name.
    pub rank: u16,
    /// Its block of the runtime's configuration, complete.
    pub config: Arc<Value>,
    /// The TrainJob.
    pub job: Arc<Job>,
    /// The record as resolve left it.
    pub base: Arc<Record>,
    /// The objects of the cluster that are at hand.
    pub lookups: Arc<Lookups>,
}

/// One call.
#[derive(Debug)]
pub struct Call {
    inputs: CallInputs,
    phase: Phase,
    access: Access,
    meter: Meter,
    record: Record,
    changes: Vec<Change>,
    containers_before: u32,
    documents: Vec<document::Document>,
    objects: Vec<Object>,
    warnings: Vec<Failure>,
    errors: Vec<Failure>,
    log: Vec<LogLine>,
    reason: Option<Arc<str>>,
}

/// What a call leaves once it is over.
#[derive(Debug)]
pub struct CallResult {
    /// The record, with the call's changes.
    pub record: Record,
    /// The changes, first one first.
    pub changes: Vec<Change>,
    /// How many containers there were before.
    pub containers_before: u32,
    /// The objects that it emitted.
    pub objects: Vec<Object>,
    /// What it warned of.
    pub warnings: Vec<Failure>,
    /// What it refuses the TrainJob for.
    pub errors: Vec<Failure>,
    /// What it logged.
    pub log: Vec<LogLine>,
}

/// A pod set or container, of the record or of its base.
#[derive(Clone, Copy)]
struct Target {
    scope: PlaceScope,
    base: bool,
}

impl Call {
    /// The handle that a phase is called with.
    pub const CONTEXT: u32 = 0;

    /// A call of one phase over the record.
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
            inputs,
            record,
            changes: Vec::new(),
            documents: Vec::new(),
            objects: Vec::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
            log: Vec::new(),
            reason: None,
        }
    }

    /// The plugin that is called.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.inputs.plugin
    }

    /// The phase that is called.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What the call has used so far.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What the call has written so far.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Ends the call, and gives what it leaves.
    #[must_use]
    pub fn finish(self) -> CallResult {
        CallResult {
            record: self.record,
            changes: self.changes,
            containers_before: self.containers_before,
            objects: self.objects,
            warnings: self.warnings,
            errors: self.errors,
            log: self.log,
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

    /// A text on its way to the guest.
    fn give(&mut self, text: &str) -> Result<String, Fault> {
        self.meter.text(text)?;
        Ok(text.to_owned())
    }

    fn give_some(&mut self, text: Option<&str>) -> Result<Option<String>, Fault> {
        text.map(|text| self.give(text)).transpose()
    }

    /// Texts on their way to the guest.
    fn give_all(&mut self, texts: Vec<String>) -> Result<Vec<String>, Fault> {
        self.meter
            .add_bytes(texts.iter().map(|text| text.len() + 8).sum())?;
        Ok(texts)
    }

    /// Handles on their way to the guest.
    fn give_handles(&mut self, handles: Vec<u32>) -> Result<Vec<u32>, Fault> {
        self.meter.add_handles(handles.len())?;
        Ok(handles)
    }

    fn give_handle(&mut self, handle: Option<u32>) -> Result<Option<u32>, Fault> {
        self.meter.add_handles(usize::from(handle.is_some()))?;
        Ok(handle)
    }

    /// Checks a read of one value, or of the set of keys (`None`), by the claims. Only transform reads by claims; base is
    /// free; what this plugin created is its own.
    fn may_read(&mut self, target: Target, field: Field, key: Option<&str>) -> Result<(), Fault> {
        if target.base || self.phase != Phase::Transform || self.is_mine(target.scope) {
            return Ok(());
        }
        match self
            .access
            .find(&self.record, Touch::Read, target.scope, field, key)
        {
            Some(_) => Ok(()),
            None => Err(match key {
                Some(key) => self.not_claimed(Touch::Read, target.scope, field, key),
                None => self.pattern_not_claimed(target.scope, field, "#"),
            }),
        }
    }

    /// Checks a read of every value of a field.
    fn may_read_all(&mut self, target: Target, field: Field) -> Result<(), Fault> {
        let free = target.base || self.phase != Phase::Transform || self.is_mine(target.scope);
        if free || self.access.covers_all(&self.record, target.scope, field) {
            return Ok(());
        }
        Err(self.pattern_not_claimed(target.scope, field, "*"))
    }

    /// The fault for a write whose kind of value needs a grant.
    fn not_granted(
        &self,
        target: Target,
        field: Field,
        key: &str,
        what: &'static str,
        allowed: &'static str,
    ) -> Fault {
        Fault::NotGranted {
            path: self.path(target.scope, field, key),
            what,
            allowed,
        }
    }

    /// Checks a write by phase, claims and meter. The grant says how far it reaches.
    fn may_write(
        &mut self,
        target: Target,
        touch: Touch,
        field: Field,
        key: &str,
    ) -> Result<Grant, Fault> {
        if target.base {
            return Err(Fault::BaseWritten);
        }
        if self.phase != Phase::Transform {
            return Err(Fault::WrongPhase {
                what: "write the record",
                phase: self.phase,
            });
        }
        self.meter.write()?;
        if self.is_mine(target.scope) {
            return Ok(Grant::Full);
        }
        self.access
            .find(&self.record, touch, target.scope, field, Some(key))
            .ok_or_else(|| self.not_claimed(touch, target.scope, field, key))
    }

    /// Writes one value (`None` removes it) after [`Self::may_write`], and journals it.
    fn put(&mut self, scope: PlaceScope, field: Field, key: &str, new: Option<Datum>) {
        let place = Place {
            scope,
            field,
            key: key.into(),
        };
        let (owner, reason) = (self.owner(), self.reason.clone());
        self.changes
            .extend(self.record.write(place, new, owner, reason));
    }

    /// Checks and writes a field for which a claim is all that is needed.
    fn set(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        new: Option<Datum>,
    ) -> Result<(), Fault> {
        self.meter.text(key)?;
        self.may_write(target, Touch::Write, field, key)?;
        self.put(target.scope, field, key, new);
        Ok(())
    }

    fn set_text(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        text: &str,
    ) -> Result<(), Fault> {
        self.meter.text(text)?;
        self.set(target, field, key, Some(text.into()))
    }

    fn read_text(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        self.may_read(target, field, Some(key))?;
        let text = self
            .record_of(target.base)
            .entry(target.scope, field, key)
            .and_then(|e| e.datum.as_text());
        let text = text.map(str::to_owned);
        self.meter.text(text.as_deref().unwrap_or_default())?;
        Ok(text)
    }

    /// Whether the scope is a container that this plugin added.
    fn is_mine(&self, scope: PlaceScope) -> bool {
        match scope {
            PlaceScope::Container(id) => self
                .record
                .container(id)
                .is_some_and(|c| c.home == self.owner()),
            _ => false,
        }
    }

    fn not_claimed(&self, touch: Touch, scope: PlaceScope, field: Field, key: &str) -> Fault {
        Fault::NotClaimed {
            touch,
            path: self.path(scope, field, key),
        }
    }

    /// The same for a read of the set of keys (`#`) or of all of them (`*`).
    fn pattern_not_claimed(&self, scope: PlaceScope, field: Field, pattern: &str) -> Fault {
        let path = self.path(scope, field, "");
        let stem = path.strip_suffix("[\"\"]").unwrap_or(&path);
        Fault::NotClaimed {
            touch: Touch::Read,
            path: format!("{stem}[{pattern}]"),
        }
    }

    fn path(&self, scope: PlaceScope, field: Field, key: &str) -> String {
        let place = Place {
            scope,
            field,
            key: key.into(),
        };
        self.record.path(&place).to_string()
    }

    fn pod_set_target(&self, rep: u32) -> Result<(Target, u32), Fault> {
        let (base, at) = (rep & BASE != 0, rep & !BASE);
        self.record_of(base)
            .pod_set(at)
            .ok_or(Fault::DeadHandle { what: "pod set" })?;
        Ok((
            Target {
                scope: PlaceScope::PodSet(at),
                base,
            },
            at,
        ))
    }

    fn container_target(&self, rep: u32) -> Result<(Target, ContainerId), Fault> {
        let (base, id) = (rep & BASE != 0, ContainerId(rep & !BASE));
        self.record_of(base)
            .container(id)
            .ok_or(Fault::DeadHandle { what: "container" })?;
        Ok((
            Target {
                scope: PlaceScope::Container(id),
                base,
            },
            id,
        ))
    }
}

/// The handle of a pod set or container by its number.
const fn handle(number: u32, base: bool) -> u32 {
    if base { number | BASE } else { number }
}

/// Ends a call over an argument.
fn wrong<T>(problem: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Argument(problem.into()))
}

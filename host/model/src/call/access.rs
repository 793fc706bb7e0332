//! The checks of every access in a call: phase, claims, grants and meter.

use super::{Call, Fault, Numbered, Target};
use crate::{
    claims::{ClaimPath, Grant, KeyPattern, ObjectPattern, Verb},
    contract::handle,
    phase::Phase,
    record::{Container, ContainerId, EntryPath, EntryRef, EntryScope, Field, Owner, PodSet},
    text::clean,
};

impl Call {
    /// The pod set of a handle, as a target.
    pub(super) fn pod_set_target(&self, handle: handle::PodSet) -> Result<(Target, u32), Fault> {
        self.pod_set(handle)?;
        let (at, base) = handle.split();
        let scope = EntryScope::PodSet(at);
        Ok((Target { scope, base }, at))
    }

    /// The pod set of a handle, for accesses that need no claim.
    pub(super) fn pod_set(&self, handle: handle::PodSet) -> Result<&PodSet, Fault> {
        let (at, base) = handle.split();
        self.record_of(base)
            .pod_set(at)
            .ok_or(Fault::DeadHandle { what: "pod set" })
    }

    /// The container of a handle, as a target.
    pub(super) fn container_target(&self, handle: handle::Container) -> Result<Target, Fault> {
        self.container(handle)?;
        let (id, base) = handle.split();
        let scope = EntryScope::Container(ContainerId(id));
        Ok(Target { scope, base })
    }

    /// The container of a handle, for accesses that need no claim or have been checked.
    pub(super) fn container(&self, handle: handle::Container) -> Result<&Container, Fault> {
        let (id, base) = handle.split();
        self.record_of(base)
            .container(ContainerId(id))
            .ok_or(Fault::DeadHandle { what: "container" })
    }

    /// Checks a read of one value, or of the set of keys (`None`). Reads need claims only in transform. The base record and containers
    /// that this plugin added need none.
    pub(super) fn may_read(
        &mut self,
        target: Target,
        field: Field,
        key: Option<&str>,
    ) -> Result<(), Fault> {
        if target.base || self.phase != Phase::Transform || self.is_mine(target.scope) {
            return Ok(());
        }
        match self
            .access
            .find(&self.record, Verb::Read, target.scope, field, key)
        {
            Some(_) => Ok(()),
            None => Err(match key {
                Some(key) => self.not_claimed(Verb::Read, target.scope, field, key),
                None => self.pattern_not_claimed(target.scope, field, KeyPattern::Set),
            }),
        }
    }

    /// Checks a read of every value of a field.
    pub(super) fn may_read_all(&mut self, target: Target, field: Field) -> Result<(), Fault> {
        let free = target.base || self.phase != Phase::Transform || self.is_mine(target.scope);
        if free || self.access.covers_all(&self.record, target.scope, field) {
            return Ok(());
        }
        Err(self.pattern_not_claimed(target.scope, field, KeyPattern::Any))
    }

    /// Checks a read of a field of every container in one list of a pod set, including those that other plugins may add.
    pub(super) fn may_read_in_all(
        &mut self,
        pod_set: Target,
        list: Field,
        field: Field,
    ) -> Result<(), Fault> {
        let EntryScope::PodSet(at) = pod_set.scope else {
            return Err(Fault::DeadHandle { what: "pod set" });
        };
        let free = pod_set.base || self.phase != Phase::Transform;
        if free || self.access.covers_all_in(at, list, field) {
            return Ok(());
        }
        let containers = self.path(pod_set.scope, list, "");
        let keys = if field.is_keyed() { "[*]" } else { "" };
        let claim = self
            .access
            .missing_claim_on_all(&self.record, at, list, field);
        Err(missing(
            Verb::Read,
            format!("{}[*].{field}{keys}", containers.stem()),
            &claim,
        ))
    }

    /// Checks a write by phase, claims and meter, and returns the extent of its permission. In a container that this plugin added, only
    /// writes that affect more than the container need a claim.
    pub(super) fn may_write(
        &mut self,
        target: Target,
        verb: Verb,
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
        let is_of_container = !matches!(field, Field::ContainerRaw | Field::Capabilities);
        if self.is_mine(target.scope) && is_of_container {
            return Ok(self
                .claimed(target, verb, field, key)
                .unwrap_or(Grant::OwnOnly));
        }
        self.claimed(target, verb, field, key)
    }

    /// The grant of the claim on an entry, even in a container that this plugin added.
    pub(super) fn claimed(
        &mut self,
        target: Target,
        verb: Verb,
        field: Field,
        key: &str,
    ) -> Result<Grant, Fault> {
        self.access
            .find(&self.record, verb, target.scope, field, Some(key))
            .ok_or_else(|| self.not_claimed(verb, target.scope, field, key))
    }

    /// The fault for a write whose value needs a grant, or in a container that this plugin added, a claim and a grant.
    pub(super) fn not_granted(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        what: &'static str,
        allowed: &'static str,
    ) -> Fault {
        let claim = self
            .access
            .claim(&self.record, Verb::Write, target.scope, field, Some(key))
            .map(|(claim, _)| clean(&claim.to_string()));
        match claim {
            None => self.not_claimed(Verb::Write, target.scope, field, key),
            Some(claim) => Fault::NotGranted {
                path: self.path(target.scope, field, key).to_string(),
                claim,
                what,
                allowed,
            },
        }
    }

    /// The fault for an access that no claim allows.
    pub(super) fn not_claimed(
        &self,
        verb: Verb,
        scope: EntryScope,
        field: Field,
        key: &str,
    ) -> Fault {
        let path = self.path(scope, field, key).to_string();
        let key = field.is_keyed().then(|| KeyPattern::Literal(key.into()));
        let claim = self
            .access
            .missing_claim(&self.record, verb, scope, field, key);
        missing(verb, path, &claim)
    }

    /// The fault for objects that no claim allows.
    pub(super) fn objects_not_claimed(
        &self,
        verb: Verb,
        field: Field,
        objects: ObjectPattern,
    ) -> Fault {
        let path = clean(&format!("{field}[{objects}]"));
        let (scope, key) = (EntryScope::Job, KeyPattern::Objects(objects));
        let claim = self
            .access
            .missing_claim(&self.record, verb, scope, field, Some(key));
        missing(verb, path, &claim)
    }

    /// The fault for a read of several keys: the set of keys, all of them, or those with a prefix.
    pub(super) fn pattern_not_claimed(
        &self,
        scope: EntryScope,
        field: Field,
        pattern: KeyPattern,
    ) -> Fault {
        let path = format!("{}[{pattern}]", self.path(scope, field, "").stem());
        let claim =
            self.access
                .missing_claim(&self.record, Verb::Read, scope, field, Some(pattern));
        missing(Verb::Read, path, &claim)
    }

    /// The fault for overwriting a value of the runtime, a patch or the TrainJob that the plugin does not reserve.
    pub(super) fn not_reserved(
        &self,
        target: Target,
        field: Field,
        key: &str,
        owner: Owner,
    ) -> Fault {
        Fault::NotReserved {
            path: self.path(target.scope, field, key).to_string(),
            owner: owner.name(),
        }
    }

    fn path(&self, scope: EntryScope, field: Field, key: &str) -> EntryPath {
        self.record.path(&EntryRef {
            scope,
            field,
            key: key.into(),
        })
    }

    /// Whether the scope is a container that this plugin added.
    fn is_mine(&self, scope: EntryScope) -> bool {
        match scope {
            EntryScope::Container(id) => self
                .record
                .container(id)
                .is_some_and(|c| c.home == self.owner()),
            _ => false,
        }
    }
}

/// The fault for an access that needs the claim. Keys come from guests, so they are cleaned.
fn missing(verb: Verb, path: String, claim: &ClaimPath) -> Fault {
    Fault::NotClaimed {
        verb,
        path,
        claim: clean(&claim.to_string()),
    }
}

use super::Fault;
use crate::limits::{Limit, Limits};

/// The resources that a call has used.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    limits: Limits,
    bytes: u64,
    handles: u64,
    writes: u64,
    log_lines: u64,
    containers: u64,
    objects: u64,
    key_material: u64,
}

impl Meter {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes: 0,
            handles: 0,
            writes: 0,
            log_lines: 0,
            containers: 0,
            objects: 0,
            key_material: 0,
        }
    }

    /// Bytes passed through imports so far, in both directions. The sandbox charges fuel for them.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes so far.
    #[must_use]
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// What was used so far of the limits that are counted here: the limit's name in a PolicyPlugin, what was used, and the limit.
    #[must_use]
    pub const fn used(&self) -> [(&'static str, u64, u64); 7] {
        let limits = &self.limits;
        [
            ("importBytes", self.bytes, limits.import_bytes),
            ("handles", self.handles, limits.handles),
            ("writes", self.writes, limits.writes),
            ("logLines", self.log_lines, limits.log_lines),
            ("containers", self.containers, limits.containers),
            ("objects", self.objects, limits.objects),
            ("keyMaterial", self.key_material, limits.key_material),
        ]
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Fault> {
        self.add_bytes(text.len())
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        over(self.bytes, self.limits.import_bytes, Limit::ImportBytes)
    }

    pub(super) fn add_handles(&mut self, handles: usize) -> Result<(), Fault> {
        self.handles = self.handles.saturating_add(handles as u64);
        over(self.handles, self.limits.handles, Limit::Handles)
    }

    pub(super) fn write(&mut self) -> Result<(), Fault> {
        self.writes += 1;
        over(self.writes, self.limits.writes, Limit::Writes)
    }

    pub(super) fn log_line(&mut self) -> Result<(), Fault> {
        self.log_lines += 1;
        over(self.log_lines, self.limits.log_lines, Limit::LogLines)
    }

    /// Counts an added container. A plugin has one transform call per TrainJob, so the limit of the call is that of the TrainJob.
    pub(super) fn container(&mut self) -> Result<(), Fault> {
        self.containers += 1;
        over(self.containers, self.limits.containers, Limit::Containers)
    }

    /// Checks the size of the texts that a plugin keeps for later phases.
    pub(super) fn kept(&self, bytes: usize) -> Result<(), Fault> {
        over(bytes as u64, self.limits.kept_bytes, Limit::KeptBytes)
    }

    /// Counts an emitted object. A plugin has one build call per TrainJob.
    pub(super) fn object(&mut self) -> Result<(), Fault> {
        self.objects += 1;
        over(self.objects, self.limits.objects, Limit::Objects)
    }

    /// Counts a key pair or random text that is requested with a new id, because generating it is expensive.
    pub(super) fn key_material(&mut self) -> Result<(), Fault> {
        self.key_material += 1;
        over(
            self.key_material,
            self.limits.key_material,
            Limit::KeyMaterial,
        )
    }
}

fn over(used: u64, allowed: u64, limit: fn(u64) -> Limit) -> Result<(), Fault> {
    if used > allowed {
        Err(Fault::Limit(limit(allowed)))
    } else {
        Ok(())
    }
}

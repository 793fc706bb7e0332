//! What the leader remembers. Another leader finds it out again.

use std::{
    collections::{BTreeMap, HashMap},
    time::SystemTime,
};

use k8s_openapi::jiff::Timestamp;
use trainyard_config::policy_plugin::ResolvedPlugin;

use super::{
    Pinned, Problem,
    comparison::{Checked, Compared},
    rollout::Failures,
};

/// What became of the PolicyPlugins when they were considered last.
#[derive(Default)]
pub(super) struct Proposed {
    /// The digest of the plugins that they ask for.
    pub(super) wanted: Option<String>,
    /// The generations of the objects that were considered.
    pub(super) generations: BTreeMap<String, i64>,
    /// What is wrong, by plugin.
    pub(super) problems: BTreeMap<String, Problem>,
    /// What is waited for, by plugin.
    pub(super) waiting: BTreeMap<String, String>,
    /// The plugins as they were resolved.
    pub(super) resolved: BTreeMap<String, ResolvedPlugin>,
    pub(super) signers: BTreeMap<String, String>,
    /// What is worth knowing of a plugin that was resolved, such as that its tag was moved to an older version.
    pub(super) notes: BTreeMap<String, String>,
    /// Whether all plugins were loaded together, even if permissions are missing.
    pub(super) is_loaded: bool,
    /// Whether permissions are missing, which an administrator may add at any time.
    pub(super) lacks_permissions: bool,
    /// Whether the revision could not be created.
    pub(super) not_created: bool,
}

impl Proposed {
    /// Whether a retry may help.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_created || self.lacks_permissions || !self.waiting.is_empty()
    }
}

/// The sources that were resolved, so that a change of one PolicyPlugin asks no registry about the others.
#[derive(Default)]
pub(super) struct PinCache {
    pub(super) pins: HashMap<(Box<str>, i64), Pinned>,
    /// When sources that may change are resolved again.
    pub(super) renews: Option<SystemTime>,
    /// How often resolving has failed in a row.
    pub(super) failed: u32,
}

/// What is known of the revision that is rolled out.
#[derive(Default)]
pub(super) struct Candidate {
    pub(super) number: u64,
    /// What it was compared with, and the result.
    pub(super) compared: Option<(u64, Compared)>,
    /// Why this release cannot load it.
    pub(super) refused: Option<String>,
    pub(super) failures: Failures,
    /// The TrainJobs that were rendered with it and with the running revision.
    pub(super) checked: Checked,
    /// Since when this process sees which TrainJobs fail.
    pub(super) watched: Option<Timestamp>,
    /// Why it does not.
    pub(super) unwatched: String,
    /// When it is checked again which TrainJobs fail.
    pub(super) checks: Option<SystemTime>,
    /// How often it could not be loaded in a row.
    pub(super) failed: u32,
}

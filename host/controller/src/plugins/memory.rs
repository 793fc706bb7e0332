//! What the leader remembers. Another leader finds it out again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
    time::SystemTime,
};

use trainyard_config::policy_plugin::{PluginRevisionSpec, ResolvedPlugin};

use super::{
    Pinned, Problem, Verified,
    comparison::{Checked, Compared},
    difference::is_same,
    rollout::{Failures, Watched},
};

/// What became of the PolicyPlugins when they were considered last.
#[derive(Default)]
pub(super) struct Proposed {
    /// The digest of the plugins that they ask for.
    pub(super) wanted: Option<String>,
    /// By the name of the plugin.
    pub(super) plugins: BTreeMap<String, ProposedPlugin>,
    /// Whether all plugins were loaded together, even if permissions are missing.
    pub(super) is_loaded: bool,
    /// Whether permissions are missing, which an administrator may add at any time.
    pub(super) lacks_permissions: bool,
    /// Whether the revision could not be created.
    pub(super) not_created: bool,
    /// What this leader knows of revisions that may be deleted.
    pub(super) seen: Seen,
}

/// What was seen of the revisions, some of which may be deleted.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// The highest number, so that each one is used once.
    pub(super) highest: u64,
    /// The digest of the plugins that were wanted last, if a revision with them existed.
    pub(super) wanted: Option<String>,
}

/// What became of one of them.
#[derive(Default)]
pub(super) struct ProposedPlugin {
    /// The generation of the object; `None` if there is none, such as of a built-in plugin that another one conflicts with.
    pub(super) generation: Option<i64>,
    /// What is wrong.
    pub(super) problem: Option<Problem>,
    /// Why the content of a disabled plugin is not available, which stops nothing.
    pub(super) unavailable: Option<Problem>,
    /// What is waited for.
    pub(super) waiting: Option<String>,
    /// The plugin as it was resolved.
    pub(super) resolved: Option<ResolvedPlugin>,
    /// The content of `resolved`, if it was pulled and verified; `None` for a built-in plugin and for what a revision has.
    pub(super) verified: Option<Verified>,
    /// What is worth knowing of it, such as that its tag was moved to an older version.
    pub(super) note: Option<String>,
    /// Why a built-in plugin is used in its place.
    pub(super) built_in: Option<String>,
}

static NOT_CONSIDERED: LazyLock<ProposedPlugin> = LazyLock::new(ProposedPlugin::default);

impl Proposed {
    /// Returns what became of the plugin of this name.
    pub(super) fn plugin(&self, name: &str) -> &ProposedPlugin {
        self.plugins.get(name).unwrap_or(&NOT_CONSIDERED)
    }

    pub(super) fn plugin_mut(&mut self, name: &str) -> &mut ProposedPlugin {
        self.plugins.entry(name.to_owned()).or_default()
    }

    pub(super) fn has_problems(&self) -> bool {
        self.plugins.values().any(|it| it.problem.is_some())
    }

    /// Whether no revision is made, because something is wrong with a plugin or waited for.
    pub(super) fn is_stopped(&self) -> bool {
        self.has_problems() || self.lacks_content()
    }

    /// Whether PolicyPlugins of a revision have changed, and no other one is made because something is wrong with one of them. What cannot be
    /// resolved may be an addition to it.
    pub(super) fn is_outdated(&self, spec: &PluginRevisionSpec) -> bool {
        if !self.is_stopped() {
            return false;
        }
        let of = |name: &str| spec.plugins.iter().find(|it| it.name == name);
        let mut proposed = self.plugins.iter();
        let differs = proposed.any(|(name, it)| {
            let resolved = it.resolved.as_ref();
            resolved.is_some_and(|resolved| of(name).is_none_or(|it| !is_same(it, resolved)))
        });
        let mut plugins = spec.plugins.iter();
        let is_deleted = plugins.any(|it| !self.plugins.contains_key(&it.name));
        differs || is_deleted
    }

    /// Whether the content of a plugin is waited for.
    pub(super) fn lacks_content(&self) -> bool {
        self.plugins.values().any(|it| it.waiting.is_some())
    }

    /// Whether the content of a disabled plugin is not available.
    pub(super) fn lacks_disabled(&self) -> bool {
        self.plugins.values().any(|it| it.unavailable.is_some())
    }

    /// Whether a retry may help.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_created || self.lacks_permissions || self.lacks_content()
    }
}

impl ProposedPlugin {
    /// Notes a problem beside those of the same condition. Those of other conditions are found again once the first one is solved.
    pub(super) fn refuse(&mut self, new: &Problem) {
        let known = self.problem.get_or_insert_with(|| new.clone());
        if known.condition == new.condition && !known.message.contains(&new.message) {
            known.message = format!("{}; {}", known.message, new.message);
        }
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
    /// Its name, which has the digest of its plugins. The name is empty before the first one.
    pub(super) name: String,
    /// The name of what it was compared with, and the result.
    pub(super) compared: Option<(String, Compared)>,
    /// Why this release cannot load it.
    pub(super) refused: Option<String>,
    pub(super) failures: Failures,
    /// The name of the running revision, and the TrainJobs that were rendered with both.
    pub(super) checked: (String, Checked),
    pub(super) watched: Watched,
    /// When it is checked again which TrainJobs fail.
    pub(super) checks: Option<SystemTime>,
    /// How often it could not be loaded in a row.
    pub(super) failed: u32,
}

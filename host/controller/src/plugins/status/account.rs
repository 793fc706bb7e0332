//! What is so about a plugin: what became of its PolicyPlugin, and which revisions have it. All of its status follows from this.

use trainyard_config::policy_plugin::ResolvedPlugin;

use super::{KnownRevision, StatusFacts};
use crate::plugins::{
    Problem, SourceError, Verified, difference::is_same, loading::LoadedRevision,
    memory::ProposedPlugin, rollout::is_live,
};

/// A plugin in a revision.
#[derive(Clone, Copy)]
pub(super) struct InRevision<'f> {
    pub(super) revision: &'f KnownRevision,
    pub(super) plugin: &'f ResolvedPlugin,
}

/// What is so about a plugin.
pub(super) struct Account<'f> {
    pub(super) proposed: &'f ProposedPlugin,
    /// What is wrong with it, or waited for.
    pub(super) problem: Option<Problem>,
    /// The revision that has it as its PolicyPlugin asks for it, or in any version if that is not known: the running one, or else the newest one
    /// that is rolled out, or else the newest one.
    pub(super) wanted: Option<InRevision<'f>>,
    /// The running revision, if it has any version of it.
    pub(super) running: Option<InRevision<'f>>,
}

impl<'f> Account<'f> {
    pub(super) fn of(name: &str, facts: &StatusFacts<'f>) -> Self {
        let proposed = facts.proposed.plugin(name);
        let waits = |message: &String| {
            let (after, message) = (None, message.clone());
            SourceError::Retry { after, message }.into_problem()
        };
        let problem = proposed.problem.as_ref().or(proposed.unavailable.as_ref());
        let with = |revision: &'f KnownRevision| {
            let mut plugins = revision.spec.plugins.iter();
            let plugin = plugins.find(|plugin| plugin.name == name)?;
            Some(InRevision { revision, plugin })
        };
        let resolved = proposed.resolved.as_ref();
        let is_wanted =
            |it: &InRevision<'_>| resolved.is_none_or(|resolved| is_same(it.plugin, resolved));
        let is_running = |it: &KnownRevision| Some(it.facts.number) == facts.running;
        let newest_first = facts.revisions.iter().rev().filter_map(with);
        let in_use = |it: &InRevision<'_>| match is_running(it.revision) {
            true => 0,
            false if is_live(it.revision.facts.stage) => 1,
            false => 2,
        };
        let mut revisions = facts.revisions.iter();
        let running = revisions.find(|it| is_running(it));
        Self {
            proposed,
            problem: problem
                .cloned()
                .or_else(|| proposed.waiting.as_ref().map(waits)),
            wanted: newest_first.filter(is_wanted).min_by_key(in_use),
            running: running.and_then(with),
        }
    }

    /// Returns who signed the content that the PolicyPlugin asks for; `None` if this process has not verified it.
    pub(super) fn verified(&self) -> Option<Verified> {
        let loaded = || {
            let it = self.wanted.filter(|_| self.proposed.built_in.is_none())?;
            match it.usage() {
                Use::Used(loaded) => Some(Verified {
                    signer: loaded.signers.get(&it.plugin.name).cloned(),
                }),
                _ => None,
            }
        };
        self.proposed.resolved.as_ref()?;
        self.proposed.verified.clone().or_else(loaded)
    }
}

/// What this process does with a plugin of a revision.
pub(super) enum Use<'f> {
    /// TrainJobs are rendered with it.
    Used(&'f LoadedRevision),
    /// The operator has disabled it.
    Disabled,
    /// A built-in plugin is used in its place.
    BuiltIn,
    /// It is skipped, for this reason. TrainJobs that need it wait.
    Skipped(&'f str),
    /// Its feature gate is off.
    GateOff(&'f str),
    /// The revision is not loaded.
    NotLoaded,
}

impl<'f> InRevision<'f> {
    /// Returns what this process does with the plugin, whatever its PolicyPlugin says.
    pub(super) fn usage(&self) -> Use<'f> {
        let name = &self.plugin.name;
        if self.plugin.settings.disabled {
            return Use::Disabled;
        }
        let Some(loaded) = self.revision.loaded.as_deref() else {
            return Use::NotLoaded;
        };
        if let Some(why) = loaded.skipped.get(name) {
            return Use::Skipped(why);
        }
        let renderer = loaded.generation.renderer();
        let Some(plugin) = renderer.generation().plugin(name) else {
            return Use::GateOff(loaded.left_out(name).unwrap_or_default());
        };
        // A built-in plugin has no digest in a revision.
        match self.plugin.digest.as_deref() {
            Some(digest) if *digest != *plugin.id.digest => Use::BuiltIn,
            _ => Use::Used(loaded),
        }
    }

    /// Returns what goes on as long as nothing replaces this running revision.
    pub(super) fn keeps_running(&self) -> String {
        let what = match self.usage() {
            Use::Used(_) => match &self.plugin.version {
                Some(version) => format!(" with version {version} of it"),
                None => " with its earlier settings".to_owned(),
            },
            Use::Disabled => ", which disables it".to_owned(),
            Use::BuiltIn => " with the built-in plugin".to_owned(),
            Use::Skipped(why) | Use::GateOff(why) => format!(", and it is skipped: {why}"),
            Use::NotLoaded => ", and the leader has not loaded it".to_owned(),
        };
        format!(
            "PluginRevision {} keeps running{what}",
            self.revision.facts.name
        )
    }
}

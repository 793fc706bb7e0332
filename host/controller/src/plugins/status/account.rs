//! What is so about a plugin: what became of its PolicyPlugin, and which revisions have it. All of its status follows from this.

use trainyard_config::policy_plugin::ResolvedPlugin;

use super::{KnownRevision, StatusFacts};
use crate::plugins::{
    PluginCondition, Problem, Verified, difference::is_same, loading::LoadedRevision,
    memory::ProposedPlugin,
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
    /// The newest revision that has it as its PolicyPlugin asks for it. If that is not known, any version of it will do.
    pub(super) wanted: Option<InRevision<'f>>,
    /// The running revision, if it has any version of it.
    pub(super) running: Option<InRevision<'f>>,
}

impl<'f> Account<'f> {
    pub(super) fn of(name: &str, facts: &StatusFacts<'f>) -> Self {
        let proposed = facts.proposed.plugin(name);
        let waits = |message: &String| Problem {
            condition: PluginCondition::Pulled,
            reason: "Retrying".to_owned(),
            message: format!("{message}; it is tried again"),
        };
        let problem = proposed.problem.clone();
        let with = |revision: &'f KnownRevision| {
            let mut plugins = revision.spec.plugins.iter();
            let plugin = plugins.find(|plugin| plugin.name == name)?;
            Some(InRevision { revision, plugin })
        };
        let resolved = proposed.resolved.as_ref();
        let is_wanted =
            |it: &InRevision<'_>| resolved.is_none_or(|resolved| is_same(it.plugin, resolved));
        let mut newest_first = facts.revisions.iter().rev().filter_map(with);
        let mut revisions = facts.revisions.iter();
        let running = revisions.find(|it| Some(it.facts.number) == facts.running);
        Self {
            proposed,
            problem: problem.or_else(|| proposed.waiting.as_ref().map(waits)),
            wanted: newest_first.find(is_wanted),
            running: running.and_then(with),
        }
    }

    /// Returns who signed the content that the PolicyPlugin asks for; `None` if this process has not verified it.
    pub(super) fn verified(&self) -> Option<Verified> {
        let loaded = || {
            let it = self.wanted.filter(|_| self.proposed.built_in.is_none())?;
            let loaded = it.loaded_with_it()?;
            let signer = loaded.signers.get(&it.plugin.name).cloned();
            Some(Verified { signer })
        };
        self.proposed.resolved.as_ref()?;
        self.proposed.verified.clone().or_else(loaded)
    }
}

impl<'f> InRevision<'f> {
    /// Returns the loaded revision, if this process has loaded it, and with this content of the plugin.
    fn loaded_with_it(&self) -> Option<&'f LoadedRevision> {
        let loaded = self.revision.loaded.as_deref()?;
        let generation = loaded.generation.renderer().generation();
        let id = &generation.plugin(&self.plugin.name)?.id;
        (self.plugin.digest.as_deref() == Some(&*id.digest)).then_some(loaded)
    }
}

//! The generations of plugins that a process holds, and the one that a TrainJob is rendered with.
//!
//! A [`Generation`] is an immutable set of loaded plugins with everything that follows from it, so plugins can change without a restart:
//! another generation is loaded beside the running one, and [`Generations::replace`] exchanges what is held in one step. Every reconcile, dry
//! run and check pins the generation of its namespace at its start ([`Pinned`]) and ends with it.
//!
//! For `host/model`, a `plan::Generation` is the checked order of the plugins alone.

mod common_inputs;
mod held;
mod share;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use common_inputs::CommonInputs;
pub(crate) use held::Pinned;
pub use held::{Held, Rolling};
use tokio::sync::watch;
use trainyard_config::policy_plugin::revision_name;
use trainyard_model::{
    facts::HostFacts,
    plan::{Plan, PlannedPlugin},
};
use trainyard_render::Renderer;

use crate::rbac::{EmittedKinds, Reach};

/// A set of loaded plugins, with everything that follows from it.
pub struct Generation {
    number: u64,
    /// The name of its revision; `None` for the plugins that were loaded at the start.
    revision: Option<String>,
    renderer: Renderer,
    plan: Arc<str>,
    /// How the objects that the plugins look up are watched.
    pub(crate) reach: Reach,
    /// The kinds of objects that the plugins may emit.
    pub(crate) emitted: EmittedKinds,
    /// The inputs that all TrainJobs of the generation share.
    pub(crate) common: CommonInputs,
}

impl Generation {
    /// Returns a generation whose TrainJobs share the inputs that `common` makes of the plugins and the digest of their plan.
    fn new(
        revision: Option<(u64, &str)>,
        renderer: Renderer,
        common: impl FnOnce(&Renderer, &str) -> CommonInputs,
    ) -> Self {
        let facts = renderer.facts();
        let loaded = renderer.generation().plugins();
        let claims: Vec<_> = loaded.map(|plugin| &plugin.manifest.claims).collect();
        let plan = renderer.generation().digest(&facts.facts);
        Self {
            number: revision.map_or(0, |(number, _)| number),
            revision: revision.map(|(number, hash)| revision_name(number, hash)),
            reach: Reach::of(claims.clone(), facts.catalog.as_deref()),
            emitted: EmittedKinds::of(claims),
            common: common(&renderer, &plan),
            plan: plan.into(),
            renderer,
        }
    }

    /// The number of its revision; 0 for the plugins that were loaded at the start.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The name of its revision; `None` for the plugins that were loaded at the start.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The loaded plugins.
    #[must_use]
    pub const fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    /// The digest of its plan.
    #[must_use]
    pub const fn plan(&self) -> &Arc<str> {
        &self.plan
    }

    /// Whether all plugins of a pinned plan are loaded, in the same version and with the same settings.
    #[must_use]
    pub fn keeps(&self, plan: &Plan) -> bool {
        plan.is_kept_by(&self.counterpart(plan))
    }

    /// Returns the plan that the loaded plugins make of a pinned one. It lacks plugins that are not loaded.
    pub(crate) fn counterpart(&self, plan: &Plan) -> Plan {
        let generation = self.renderer.generation();
        let loaded = |planned: &PlannedPlugin| {
            let plugin = generation.plugin(&planned.name)?;
            Some(PlannedPlugin::of(plugin, &planned.config))
        };
        let plugins = plan.plugins.iter().filter_map(loaded).collect();
        Plan::new(plugins, &self.renderer.facts().facts)
    }
}

/// The generations of a process.
pub struct Generations {
    held: watch::Sender<Arc<Held>>,
    /// The host's own facts, which change while the process runs. All generations share them.
    host: HostFacts,
    write_defaults: bool,
    /// The inputs of TrainJobs that are rendered with what was loaded at the start.
    first: CommonInputs,
}

impl Generations {
    /// Returns the generations of a process that has loaded these plugins at its start. With `write_defaults`, JobSets have the defaults that
    /// JobSet's webhooks would set.
    #[must_use]
    pub fn new(plugins: Renderer, write_defaults: bool) -> Self {
        let host = plugins.facts().host.clone();
        let first = Generation::new(None, plugins, |plugins, plan| {
            CommonInputs::new(plugins, plan, write_defaults)
        });
        Self {
            host,
            write_defaults,
            first: first.common.clone(),
            held: watch::Sender::new(Arc::new(Held::only(Arc::new(first)))),
        }
    }

    /// Returns a further generation: the plugins of a revision, as far as they could be loaded, with its number and the digest of all its
    /// plugins. It is used once it is held ([`Self::replace`]).
    #[must_use]
    pub fn generation(&self, revision: (u64, &str), plugins: Renderer) -> Arc<Generation> {
        let plugins = plugins.with_host_facts(self.host.clone());
        let common = |_: &_, _: &_| self.first.of_revision(revision.1);
        Arc::new(Generation::new(Some(revision), plugins, common))
    }

    /// Returns the generations that are held now.
    #[must_use]
    pub fn held(&self) -> Arc<Held> {
        self.held.borrow().clone()
    }

    /// Replaces the generations that are held. What has pinned one ends with it. TrainJobs that have not started follow.
    pub fn replace(&self, held: Held) {
        self.held.send_replace(Arc::new(held));
    }

    /// Returns the generation of a namespace for a reconcile, a dry run or a check that begins.
    pub(crate) fn pin(&self, namespace: &str) -> Pinned {
        Pinned::new(self.held(), namespace)
    }

    /// Returns a receiver that is notified of each replacement.
    pub(crate) fn replacements(&self) -> watch::Receiver<Arc<Held>> {
        self.held.subscribe()
    }

    /// The host's own facts.
    pub(crate) const fn host_facts(&self) -> &HostFacts {
        &self.host
    }

    /// Whether JobSets have the defaults that JobSet's webhooks would set.
    pub(crate) const fn write_defaults(&self) -> bool {
        self.write_defaults
    }
}

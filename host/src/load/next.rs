//! The plugins after a change: with another version of a plugin, other PolicyPlugins, or both.

use std::{path::Path, sync::Arc};

use trainyard_model::{
    claims::Grants,
    plan::Candidate,
    plugin::Plugin,
    plugin_info::{PluginError, PluginInfo, Settings},
};
use trainyard_render::{ClusterFacts, Renderer};
use trainyard_sandbox::Loader;

use super::{
    loading::{CodeLoading, Loading},
    refused::Origin,
    result::LoadResult,
};
use crate::{
    policy::{PluginFile, Policy},
    report::{self, ErrorList},
};

/// The plugins after a change. Those that the operator's settings refuse have all their claims granted, so that all of the change can be
/// reported.
pub(crate) struct NextPlugins {
    result: LoadResult,
    policy: Policy,
    /// Why the new file would not be loaded, although it is compared.
    pub(crate) not_loaded: Vec<String>,
}

impl NextPlugins {
    /// Loads the built-in plugins, these files, and a `new` file, which replaces the plugin of the same name.
    ///
    /// # Errors
    /// Why files cannot be loaded, whatever a PolicyPlugin grants, and errors of PolicyPlugins.
    pub(super) fn load(
        loader: &Loader,
        files: &[PluginFile],
        new: Option<&Path>,
        policy: Policy,
    ) -> Result<Self, ErrorList> {
        let anyway = || LoadResult {
            granted_anyway: Some(Vec::new()),
            ..LoadResult::default()
        };
        let mut all = anyway();
        all.add_all(&Loading::new(loader, CodeLoading::Lazy), files, &policy);
        let mut own = anyway();
        if let Some(file) = new {
            let origin = Origin::File(file.to_owned());
            own.add(origin, Settings::default(), &policy, |settings| {
                Ok(Arc::new(loader.load_file(file, settings)?))
            });
        }
        let disabled = own.disabled_names().into_iter();
        let mut not_loaded: Vec<_> = disabled
            .map(|name| PluginError::Disabled(name).to_string())
            .collect();
        if let Some((new, _)) = own.loaded.first() {
            let name = &new.info().id.name;
            let is_built_in = |(plugin, origin): &(Arc<dyn Plugin>, Origin)| {
                plugin.info().id.name == *name && matches!(origin, Origin::BuiltIn)
            };
            if all.loaded.iter().any(is_built_in) {
                not_loaded.push(format!(
                    "plugin {name}: has the name of a built-in plugin, and names must be unique; choose another name"
                ));
            }
            all.remove(name);
        }
        all.absorb(own);
        let mut failure = ErrorList::from_iter(all.policy_errors(&policy, None));
        let refused = all.refused.iter();
        refused.for_each(|refused| failure.add(refused));
        let loaded = all.loaded.iter().map(|(plugin, _)| plugin.info());
        policy.unused_grants(loaded).iter().for_each(report::warn);
        failure.or_ok(Self {
            result: all,
            policy,
            not_loaded,
        })
    }

    /// Returns the plugins.
    pub(crate) fn infos(&self) -> impl Iterator<Item = &Arc<PluginInfo>> {
        self.result.loaded.iter().map(|(plugin, _)| plugin.info())
    }

    /// Returns why the operator's settings refuse plugins.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &PluginError> {
        self.result.granted_anyway.iter().flatten()
    }

    /// Returns the operator's grants for one of the plugins.
    pub(crate) fn grants(&self, plugin: &PluginInfo) -> Grants {
        let name = &plugin.id.name;
        match self.refused().any(|refused| *refused.plugin() == **name) {
            true => self.policy.settings(name, Settings::default()).grants,
            false => plugin.settings.grants.clone(),
        }
    }

    /// Returns their plan.
    pub(crate) fn candidate(&self) -> Candidate {
        Candidate::new(self.infos().cloned(), &self.policy.facts().accelerators)
    }

    /// Returns the settings for all TrainJobs.
    pub(crate) fn facts(&self) -> ClusterFacts {
        self.policy.facts()
    }

    /// Returns what renders TrainJobs with them. `None` if they have no plan.
    pub(crate) fn renderer(&self) -> Option<Renderer> {
        let loaded = self.result.loaded.iter();
        let plugins = loaded.map(|(plugin, _)| plugin.clone());
        let renderer = Renderer::new(plugins, self.policy.facts()).ok()?;
        Some(renderer.with_skipped(self.result.left_out().collect()))
    }
}

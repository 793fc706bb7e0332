//! A plugin file that is compared with the loaded plugins.

use std::sync::Arc;

use trainyard_model::{
    claims::Grants,
    manifest::Manifest,
    plan::Candidate,
    plugin_info::{PluginError, PluginInfo, Settings},
};
use trainyard_render::Renderer;
use trainyard_sandbox::{LoadError, Loader};

use super::result::{load_anyway, load_bytes};
use crate::policy::Policy;

/// The digest of a plugin whose component is not built.
const NOT_BUILT: &str = "not built";

/// A plugin file that is compared with the loaded plugins.
pub(crate) struct NewPlugin {
    /// The plugin with the operator's settings. If these refuse it, all its claims are granted.
    pub(crate) plugin: Arc<PluginInfo>,
    /// Why the operator's settings refuse it, such as by its digest or because of claims beyond its grants.
    pub(crate) refused: Option<PluginError>,
}

impl NewPlugin {
    /// Loads a component, like [`load_anyway`]. Errors have this name.
    ///
    /// # Errors
    /// If it cannot be loaded even with all its claims granted.
    pub(super) fn load(
        loader: &Loader,
        name: &str,
        component: &[u8],
        policy: &Policy,
    ) -> Result<Self, LoadError> {
        let mut settings =
            |manifest: &Manifest| policy.settings(&manifest.name, Settings::default());
        let (plugin, refused) = load_anyway(&mut settings, |settings| {
            load_bytes(loader, name, component, settings)
        })?;
        Ok(Self {
            plugin: plugin.info().clone(),
            refused,
        })
    }

    /// Returns the plugin of a manifest, whose component is not built.
    ///
    /// # Errors
    /// If it could not be loaded even with all its claims granted.
    pub(super) fn of_manifest(manifest: Manifest, policy: &Policy) -> Result<Self, PluginError> {
        let mut wanted = policy.settings(&manifest.name, Settings::default());
        wanted.digest = None;
        if manifest.operator_config_schema.is_none() {
            // The code may derive a schema.
            wanted.operator_config = Settings::default().operator_config;
        }
        let as_claimed = Settings {
            grants: Grants::AsClaimed,
            is_disabled: false,
            ..wanted.clone()
        };
        let plugin = Arc::new(PluginInfo::new(manifest, NOT_BUILT, as_claimed)?);
        Ok(
            match PluginInfo::new(plugin.manifest.clone(), NOT_BUILT, wanted) {
                Ok(plugin) => Self {
                    plugin: Arc::new(plugin),
                    refused: None,
                },
                Err(refused) => Self {
                    plugin,
                    refused: Some(refused),
                },
            },
        )
    }

    /// Returns why it would not be loaded beside these plugins: because of its settings, and because of each conflict with one of them.
    pub(super) fn refusals(&self, loaded: &Renderer) -> Vec<String> {
        let of_settings = match &self.refused {
            None => Vec::new(),
            Some(PluginError::Claims { errors, .. }) => {
                errors.iter().map(ToString::to_string).collect()
            }
            Some(error) => vec![error.to_string()],
        };
        let plugins = loaded.generation().plugins().cloned();
        let plugins = plugins.chain([self.plugin.clone()]);
        let with_it = Candidate::new(plugins, &loaded.facts().accelerators);
        let of_plan = with_it.errors().iter().map(ToString::to_string);
        of_settings.into_iter().chain(of_plan).collect()
    }
}

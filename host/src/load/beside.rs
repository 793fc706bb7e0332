//! A plugin file that is not loaded, seen beside those that are.

use std::{path::Path, sync::Arc};

use trainyard_model::{
    claims::Grants,
    plugin::{Plugin, PluginError, Settings},
    policy::Policy,
};
use trainyard_sandbox::{LoadError, Loader};

use crate::policy_file::PolicyFile;

/// A plugin file under what the operator sets for its plugin.
pub(crate) struct Beside {
    /// The plugin; with all that it claims where its grants do not allow that.
    pub(crate) plugin: Arc<Plugin>,
    /// Why it would not be loaded, if so: another digest than the operator accepts, or claims beyond its grants.
    pub(crate) refused: Option<PluginError>,
}

impl Beside {
    /// Loads the file as if all that it claims were granted, so that what else would come of it can be told.
    ///
    /// # Errors
    /// Why it can't be loaded even so.
    pub(super) fn load(
        loader: &Loader,
        file: &Path,
        policy: &PolicyFile,
    ) -> Result<Self, LoadError> {
        let mut wanted = Settings::default();
        let as_claimed = loader.load_file(file, |manifest| {
            wanted = policy.settings(&manifest.name, Settings::default());
            Settings {
                grants: Grants::AsClaimed,
                digest: None,
                ..wanted.clone()
            }
        })?;
        let plugin = as_claimed.plugin().clone();
        Ok(
            match Plugin::new(plugin.manifest.clone(), &plugin.id.digest, wanted) {
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
}

//! What a PolicyPlugin means for its plugin.

use std::sync::Arc;

use trainyard_model::{
    claims::Grants,
    plugin_info::{Exemptions, Settings},
};

use super::PolicyPluginSpec;

impl PolicyPluginSpec {
    /// Returns the plugin's settings, based on its defaults.
    #[must_use]
    pub fn settings(&self, mut defaults: Settings) -> Settings {
        if let Grants::Paths(paths) = &mut defaults.grants {
            paths.extend(self.grants.iter().cloned());
        }
        if let Some(config) = &self.config {
            defaults.operator_config = Arc::new(config.clone());
        }
        defaults.after.extend(self.after.iter().cloned());
        defaults.before.extend(self.before.iter().cloned());
        defaults.excludes.extend(self.excludes.iter().cloned());
        Settings {
            limits: self.limits.limits(),
            compile: self.compile,
            digest: self.digest.clone(),
            is_disabled: self.disabled,
            exemptions: Exemptions {
                disabled_for: self.disabled_for.clone(),
                enabled_for: self.enabled_for.clone(),
                train_jobs_may_disable: self.train_jobs_may_disable,
            },
            ..defaults
        }
    }

    /// Returns it without `source`, as it is in a PluginRevision.
    #[must_use]
    pub fn without_source(&self) -> Self {
        Self {
            source: None,
            ..self.clone()
        }
    }
}

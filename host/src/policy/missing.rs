//! PolicyPlugins whose plugin is not available.

use trainyard_config::policy_plugin::PolicyPlugin;
use trainyard_model::plugin_info::{Exemptions, PluginError};
use trainyard_render::{Declared, SkippedPlugin};

use crate::{built_ins, report::ErrorList};

/// A PolicyPlugin whose source has no plugin that may be loaded.
pub(crate) struct Missing {
    pub(super) plugin: PolicyPlugin,
    pub(super) errors: ErrorList,
}

impl Missing {
    /// Returns the name of the plugin.
    pub(crate) fn name(&self) -> &str {
        &self.plugin.name
    }

    /// Returns the place of the source, and what is wrong with it.
    pub(crate) fn refusal(&self) -> (String, String) {
        let place = self.plugin.at("source").to_string();
        let prefix = format!("{place}: ");
        let lines = self.errors.lines();
        let lines = lines.map(|line| line.strip_prefix(&prefix).unwrap_or(&line).to_owned());
        let why = lines.collect::<Vec<_>>().join("; ");
        (place, why)
    }

    /// Returns the plugin for the errors of TrainJobs that need it. The manifest of what replaces a built-in plugin is not known, so that they
    /// are those of the built-in one.
    pub(crate) fn skipped(&self) -> SkippedPlugin {
        let spec = &self.plugin.spec;
        let declared = built_ins::manifest(&self.plugin.name).map(|manifest| Declared {
            name: manifest.name,
            active_when: manifest.active_when,
            exemptions: Exemptions {
                disabled_for: spec.disabled_for.clone(),
                enabled_for: spec.enabled_for.clone(),
                train_jobs_may_disable: spec.train_jobs_may_disable,
            },
        });
        let (place, why) = self.refusal();
        SkippedPlugin {
            declared,
            why: match spec.disabled {
                true => PluginError::Disabled(self.plugin.name.clone()).to_string(),
                false => format!("{place}: {why}"),
            },
            is_disabled: spec.disabled,
        }
    }
}

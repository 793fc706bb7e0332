//! A plugin of a test, with the operator's settings for it.

use std::sync::Arc;

use serde_json::{Map, Value};
use trainyard_model::{claims::Grants, plugin_info::Settings};

use super::MockError;
use crate::{PluginParts, native::NativePlugin};

/// A plugin with the operator's settings for it, for a test with several plugins.
///
/// Each of them is one of a PolicyPlugin. A plugin without settings has the default grants and limits.
///
/// ```
/// use serde_json::json;
/// use trainyard_sdk::{PluginParts, mock::MockPlugin};
///
/// fn fabric(plugin: &PluginParts) -> MockPlugin {
///     MockPlugin::new(plugin)
///         .grants(&["pod-sets[@nodes].containers[node].limits[example.com/nic]"])
///         .operator_config(json!({"interface": "eth0"}))
///         .after(&["topology"])
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MockPlugin {
    parts: PluginParts,
    pub(super) settings: MockSettings,
}

impl From<&PluginParts> for MockPlugin {
    fn from(plugin: &PluginParts) -> Self {
        Self::new(plugin)
    }
}

impl MockPlugin {
    /// Creates a plugin without settings.
    #[must_use]
    pub fn new(plugin: &PluginParts) -> Self {
        Self {
            parts: *plugin,
            settings: MockSettings::default(),
        }
    }

    /// Adds grants (`grants` of a PolicyPlugin).
    #[must_use]
    pub fn grants(mut self, grants: &[&str]) -> Self {
        self.settings.add_grants(grants);
        self
    }

    /// Grants everything that the plugin claims, as for built-in plugins.
    #[must_use]
    pub fn all_granted(mut self) -> Self {
        self.settings.operator.grants = Grants::AsClaimed;
        self
    }

    /// Sets the operator's configuration of the plugin (`config`).
    #[must_use]
    pub fn operator_config(mut self, config: Value) -> Self {
        self.settings.operator.operator_config = Arc::new(config);
        self
    }

    /// Sets a limit of one call (`limits`). The mock host does not measure fuel, memory and time.
    #[must_use]
    pub fn limit(mut self, name: &str, limit: u64) -> Self {
        self.settings.set_limit(name, limit);
        self
    }

    /// Adds plugins that run before this one if both write the same path (`after`).
    #[must_use]
    pub fn after(mut self, plugins: &[&str]) -> Self {
        let names = plugins.iter().copied().map(str::to_owned);
        self.settings.operator.after.extend(names);
        self
    }

    /// Loads the plugin.
    pub(super) fn load(self) -> Result<NativePlugin, MockError> {
        let settings = self.settings.read()?;
        Ok(NativePlugin::new(&self.parts, settings)?)
    }
}

/// The operator's settings for a plugin. Grants and limits are as in a PolicyPlugin, and are parsed when the plugin is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct MockSettings {
    pub(super) operator: Settings,
    grants: Vec<String>,
    limits: Map<String, Value>,
}

impl MockSettings {
    pub(super) fn add_grants(&mut self, grants: &[&str]) {
        let grants = grants.iter().copied().map(str::to_owned);
        self.grants.extend(grants);
    }

    pub(super) fn set_limit(&mut self, name: &str, limit: u64) {
        self.limits.insert(name.to_owned(), limit.into());
    }

    fn read(self) -> Result<Settings, MockError> {
        let mut settings = self.operator;
        if let Grants::Paths(paths) = &mut settings.grants {
            for grant in &self.grants {
                paths.push(grant.parse()?);
            }
        }
        if !self.limits.is_empty() {
            settings.limits = serde_json::from_value(Value::Object(self.limits))?;
        }
        Ok(settings)
    }
}

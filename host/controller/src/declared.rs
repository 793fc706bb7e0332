//! The settings of where plugins are declared, and of how a change of them is rolled out.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainyard_oci::Signers;

/// The settings of where plugins are declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSettings {
    /// Where plugins are declared.
    pub source: PluginsSource,
    /// How a change of the plugins is rolled out.
    pub rollout: RolloutSettings,
    /// Who may sign plugins from registries, and from where they may be unsigned. By default, nobody and nowhere.
    pub signers: Signers,
    /// The folder that keeps plugins of registries. By default, one in the cache directory.
    pub store: Option<PathBuf>,
}

/// Where plugins are declared.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[value(rename_all = "PascalCase")]
pub enum PluginsSource {
    /// In `policyFile` and `pluginDir`. A change needs a restart.
    #[default]
    File,
    /// In PolicyPlugins of the cluster. A change is rolled out.
    Cluster,
}

/// The settings of rollouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSettings {
    /// The shares of namespaces through which a revision goes before it runs everywhere, in percent.
    pub steps: Vec<u8>,
    /// How long each share lasts.
    pub interval: Duration,
}

impl Default for RolloutSettings {
    fn default() -> Self {
        Self {
            steps: vec![10, 50],
            interval: Duration::from_secs(300),
        }
    }
}

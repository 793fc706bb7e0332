//! The keys of where plugins are declared, and which ones are accepted, in Trainyard's own configuration file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_config::FieldError;
use trainyard_oci::{MAX_SIGNERS, REPOSITORIES, Signer, Signers};

use super::duration::DURATION;
use crate::declared::{PluginSettings, PluginsSource, RolloutSettings};

/// Where plugins are declared, how a change of them is rolled out, and which ones are accepted from registries.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PluginsFile {
    /// Where plugins are declared: `File` for `policyFile` and `pluginDir`, or `Cluster` for PolicyPlugins. Default `File`.
    source: PluginsSource,
    /// How a change of PolicyPlugins is rolled out.
    rollout: Rollout,
    /// Who may sign plugins, with keys. Default: nobody, so that no plugin is accepted from a registry.
    #[schemars(length(max = MAX_SIGNERS))]
    signers: Vec<Signer>,
    /// Repositories from which plugins need no signature, such as `registry.example.com/team/*`. A trailing `*` matches any ending. A plugin that
    /// replaces a built-in one always needs one. Default: none.
    #[schemars(length(max = MAX_SIGNERS), inner(regex(pattern = REPOSITORIES), length(max = 255)))]
    unsigned: Vec<String>,
    /// The directory in the OCI image layout that keeps plugins of registries, so that a process that finds them there starts when a registry
    /// is down. Replicas can share it, on a volume with the access mode ReadWriteMany. Each file is hashed, and its signature verified, at each
    /// load, so whoever else can write to it cannot make the controller load anything else. Default: `store` in the cache directory, which a
    /// new pod has empty.
    #[schemars(with = "Option<String>")]
    store: Option<PathBuf>,
}

/// How a change of PolicyPlugins is rolled out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Rollout {
    /// The shares of the namespaces that get the change one after the other, in percent, each larger than the one before. Default `[10, 50]`.
    /// Without any, it gets to all namespaces at once.
    #[schemars(length(max = 16), inner(range(min = 1, max = 99)))]
    steps: Option<Vec<u8>>,
    /// How long each share lasts. Default `5m`.
    #[schemars(with = "Option<String>", regex(pattern = DURATION), length(max = 64))]
    interval: Option<kube::core::Duration>,
}

impl PluginsFile {
    pub(super) fn resolve(self) -> PluginSettings {
        let default = RolloutSettings::default();
        PluginSettings {
            source: self.source,
            signers: Signers::new(self.signers, self.unsigned),
            store: self.store,
            rollout: RolloutSettings {
                steps: self.rollout.steps.unwrap_or(default.steps),
                interval: self.rollout.interval.map_or(default.interval, Into::into),
            },
        }
    }
}

/// Returns the errors of the settings that a schema cannot express.
pub(super) fn check(value: &Value) -> Option<FieldError> {
    let steps = value.pointer("/plugins/rollout/steps")?.as_array()?;
    let numbers: Vec<_> = steps.iter().filter_map(Value::as_u64).collect();
    let mut pairs = numbers.iter().zip(numbers.iter().skip(1));
    let at = pairs.position(|(one, next)| one >= next)?;
    let (one, next) = (numbers.get(at)?, numbers.get(at + 1)?);
    Some(FieldError {
        field: FieldPath::of(["plugins", "rollout", "steps"]).index(at + 1),
        problem: format!("must be larger than the one before, which is {one}; found {next}"),
    })
}

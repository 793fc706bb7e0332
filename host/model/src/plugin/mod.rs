//! A loaded plugin: who it is, what it declares, what the operator allows and sets.

mod pinned;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;
use thiserror::Error;

pub use self::pinned::PinnedSettings;
use crate::{
    claims::{ClaimError, CompiledClaims, Grants},
    limits::Limits,
    manifest::{Manifest, NodeSet, When},
    schema::{ConfigError, Schema},
    text::join,
};

/// What the operator sets for a plugin.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it may write, look up and count beyond the default.
    pub grants: Grants,
    /// What a call may use.
    pub limits: Limits,
    /// Its operator configuration.
    pub operator_config: Arc<Value>,
    /// Plugins that run before it where both write a path, beside the manifest's.
    pub after: Vec<String>,
    /// Plugins that run after it where both write a path, beside the manifest's.
    pub before: Vec<String>,
    /// Plugins that are never active for one TrainJob together with it.
    pub excludes: Vec<String>,
    /// Whether it is left out.
    pub is_disabled: bool,
    /// The only content that is accepted under its name, as `sha256:HEX`; any where none is given.
    pub digest: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grants: Grants::default(),
            limits: Limits::default(),
            operator_config: Arc::new(Value::Object(serde_json::Map::new())),
            after: Vec::new(),
            before: Vec::new(),
            excludes: Vec::new(),
            is_disabled: false,
            digest: None,
        }
    }
}

impl Settings {
    /// The settings of a built-in plugin: its own claims, all granted.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            grants: Grants::AsClaimed,
            ..Self::default()
        }
    }
}

/// A plugin by name, version and content: how errors, logs and provenance speak of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginId {
    /// Its name.
    pub name: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// `sha256:` and the digest of the component's bytes; `native` for a native policy.
    pub digest: Arc<str>,
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.digest.get(..19).unwrap_or(&self.digest);
        write!(f, "{} {} ({short})", self.name, self.version)
    }
}

/// A plugin with its settings.
#[derive(Debug)]
pub struct Plugin {
    /// Who it is.
    pub id: PluginId,
    /// What it declares.
    pub manifest: Manifest,
    /// Its claims, checked against its grants.
    pub claims: Arc<CompiledClaims>,
    /// What the operator set.
    pub settings: Settings,
    /// In which configurations each env var is the plugin's; `None` is each of them.
    reserved_env: BTreeMap<String, Vec<Option<When>>>,
}

/// Why a plugin is not loaded.
#[derive(Debug, Error)]
pub enum PluginError {
    /// The operator does not want it.
    #[error("the plugin `{0}` is disabled in the policy file")]
    Disabled(String),
    /// Its content is not the one that the operator accepts under its name.
    #[error(
        "plugin {id}: only the digest {wanted} is accepted under this name, by `digest` in the policy file"
    )]
    Digest {
        /// The plugin.
        id: PluginId,
        /// The digest that is accepted.
        wanted: String,
    },
    /// Claims that are impossible or not granted.
    #[error("plugin {id}: {}", join(errors, "; "))]
    Claims {
        /// The plugin.
        id: PluginId,
        /// All that is wrong.
        errors: Vec<ClaimError>,
    },
    /// The operator's configuration fails the plugin's schema.
    #[error("plugin {id}: `config` in the policy file: {}", join(errors, "; "))]
    OperatorConfig {
        /// The plugin.
        id: PluginId,
        /// All that is wrong.
        errors: Vec<ConfigError>,
    },
}

impl Plugin {
    /// A plugin of that manifest and content under those settings.
    ///
    /// # Errors
    /// A plugin that is disabled; a digest that the settings do not accept; all claims that are impossible or beyond the grants; an operator
    /// configuration that fails its schema.
    pub fn new(
        manifest: Manifest,
        digest: &str,
        mut settings: Settings,
    ) -> Result<Self, PluginError> {
        if settings.is_disabled {
            return Err(PluginError::Disabled(manifest.name));
        }
        let id = PluginId {
            name: manifest.name.as_str().into(),
            version: manifest.version.as_str().into(),
            digest: digest.into(),
        };
        if let Some(wanted) = settings.digest.take_if(|wanted| *wanted != *id.digest) {
            return Err(PluginError::Digest { id, wanted });
        }
        let not_counted = node_sets_not_granted(&manifest, &settings.grants);
        let claims = match CompiledClaims::new(&manifest.claims, &settings.grants) {
            Ok(claims) if not_counted.is_empty() => claims,
            claims => {
                let errors = claims.err().into_iter().flatten().chain(not_counted);
                return Err(PluginError::Claims {
                    id,
                    errors: errors.collect(),
                });
            }
        };
        let mut operator_config = (*settings.operator_config).clone();
        let schema = manifest.operator_config_schema.as_ref();
        complete(schema, &mut operator_config, NO_OPERATOR_CONFIG).map_err(|errors| {
            PluginError::OperatorConfig {
                id: id.clone(),
                errors,
            }
        })?;
        settings.operator_config = Arc::new(operator_config);
        Ok(Self {
            id,
            reserved_env: reserved_env(&manifest),
            manifest,
            claims: Arc::new(claims),
            settings,
        })
    }

    /// Whether the plugin keeps an env var for itself in that configuration.
    #[must_use]
    pub fn reserves(&self, name: &str, config: &Value) -> bool {
        let whens = self.reserved_env.get(name).into_iter().flatten();
        whens
            .into_iter()
            .any(|when| when.as_ref().is_none_or(|when| when.holds(config)))
    }

    /// What a started TrainJob keeps of the plugin's settings.
    #[must_use]
    pub fn pinned_settings(&self) -> PinnedSettings {
        PinnedSettings::of(&self.settings)
    }

    /// Its configuration, with the defaults of its schema filled in.
    ///
    /// # Errors
    /// All that is wrong with it, each with its pointer. A plugin without a schema takes no configuration.
    pub fn config(&self, mut config: Value) -> Result<Arc<Value>, Vec<ConfigError>> {
        complete(self.manifest.config_schema.as_ref(), &mut config, NO_CONFIG)?;
        Ok(Arc::new(config))
    }
}

/// The env vars that the plugin keeps for itself, by name.
fn reserved_env(manifest: &Manifest) -> BTreeMap<String, Vec<Option<When>>> {
    let mut reserved: BTreeMap<String, Vec<Option<When>>> = BTreeMap::new();
    for some in &manifest.reserved_env {
        for name in some.names() {
            let whens = reserved.entry(name.clone()).or_default();
            whens.push(some.when().cloned());
        }
    }
    reserved
}

/// The pod sets of `nodeSets` whose count the operator does not let the plugin move to `numNodes`.
fn node_sets_not_granted(manifest: &Manifest, grants: &Grants) -> Vec<ClaimError> {
    let counts = manifest.node_sets.iter().map(NodeSet::count);
    counts
        .filter(|count| !grants.allow(count))
        .map(|count| ClaimError::NodeSetNotGranted {
            path: count.to_string(),
        })
        .collect()
}

const NO_CONFIG: &str = "this plugin takes no configuration";
const NO_OPERATOR_CONFIG: &str = "this plugin takes no configuration from the operator (its manifest has no operatorConfigSchema); what a runtime sets stands in its `config` there";

/// Fills in defaults and validates; null is the empty object.
fn complete(
    schema: Option<&Schema>,
    config: &mut Value,
    none: &str,
) -> Result<(), Vec<ConfigError>> {
    if config.is_null() {
        *config = Value::Object(serde_json::Map::new());
    }
    match schema {
        Some(schema) => schema.complete(config),
        None if config.as_object().is_some_and(serde_json::Map::is_empty) => Ok(()),
        None => Err(vec![ConfigError {
            pointer: String::new(),
            problem: none.to_owned(),
        }]),
    }
}

//! A loaded plugin: its identity, its manifest, and the operator's settings.

mod exemptions;
mod pinned;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;
use thiserror::Error;
use trainyard_text::FieldPath;

pub use self::{
    exemptions::{Exemptions, JobSelector},
    pinned::PinnedSettings,
};
use crate::{
    claims::{ClaimError, CompiledClaims, Grants},
    limits::{CompileLimits, Limits},
    manifest::{ConfigCondition, Manifest, NodeSet},
    names::short_digest,
    record::ObeyedDomains,
    schema::{ConfigError, Schema},
    text::join,
};

/// The operator's settings for a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The grants: what it can write, look up and count beyond the default.
    pub grants: Grants,
    /// The domains whose labels and annotations have to be granted by name.
    pub obeyed: ObeyedDomains,
    /// The limits of a call.
    pub limits: Limits,
    /// The limits of checking and compiling it.
    pub compile: CompileLimits,
    /// Its operator configuration.
    pub operator_config: Arc<Value>,
    /// Plugins that run before it if both write the same path, in addition to the manifest's `after`.
    pub after: Vec<String>,
    /// Plugins that run after it if both write the same path, in addition to the manifest's `before`.
    pub before: Vec<String>,
    /// Plugins that must not be active for the same TrainJob.
    pub excludes: Vec<String>,
    /// Whether it is disabled.
    pub is_disabled: bool,
    /// The TrainJobs that run without it, if it is always active.
    pub exemptions: Exemptions,
    /// The only digest that is accepted for its name, in the form `sha256:HEX`. `None` accepts any.
    pub digest: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grants: Grants::default(),
            obeyed: ObeyedDomains::default(),
            limits: Limits::default(),
            compile: CompileLimits::default(),
            operator_config: Arc::new(Value::Object(serde_json::Map::new())),
            after: Vec::new(),
            before: Vec::new(),
            excludes: Vec::new(),
            is_disabled: false,
            exemptions: Exemptions::default(),
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

/// Identifies a plugin in errors, logs and provenance: by name, version and digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginId {
    /// Its name.
    pub name: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// `sha256:` and the digest of the component's bytes; `native` for a native plugin.
    pub digest: Arc<str>,
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = short_digest(&self.digest);
        write!(f, "{} {} ({digest})", self.name, self.version)
    }
}

/// A loaded plugin.
#[derive(Debug)]
pub struct PluginInfo {
    /// Its name, version and digest.
    pub id: PluginId,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its claims, checked against its grants.
    pub claims: Arc<CompiledClaims>,
    /// The operator's settings.
    pub settings: Settings,
    /// The conditions under which the plugin reserves each env var; `None` means always.
    reserved_env: BTreeMap<String, Vec<Option<ConfigCondition>>>,
}

/// Why a plugin is not loaded.
#[derive(Debug, Error)]
pub enum PluginError {
    /// The operator disabled it.
    #[error("the plugin `{0}` is disabled in its PolicyPlugin")]
    Disabled(String),
    /// Its PolicyPlugin accepts only another digest.
    #[error("plugin {id}: its PolicyPlugin accepts only digest {wanted}")]
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
        /// All errors.
        errors: Vec<ClaimError>,
    },
    /// The operator configuration is invalid according to the plugin's schema.
    #[error("plugin {id}: `config` in its PolicyPlugin: {}", join(errors, "; "))]
    OperatorConfig {
        /// The plugin.
        id: PluginId,
        /// All errors.
        errors: Vec<ConfigError>,
    },
}

impl PluginError {
    /// The name of the plugin.
    #[must_use]
    pub fn plugin(&self) -> &str {
        match self {
            Self::Disabled(name) => name,
            Self::Digest { id, .. } | Self::Claims { id, .. } | Self::OperatorConfig { id, .. } => {
                &id.name
            }
        }
    }
}

impl PluginInfo {
    /// Loads a plugin with a manifest, a digest and settings.
    ///
    /// # Errors
    /// The plugin is disabled, its digest is not accepted, claims are impossible or not granted, or the operator configuration is
    /// invalid.
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
        let not_counted = node_sets_not_granted(&manifest, &settings);
        let claims = match CompiledClaims::new(&manifest.claims, &settings.grants, &settings.obeyed)
        {
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

    /// Whether the plugin reserves an env var in that configuration.
    #[must_use]
    pub fn reserves(&self, name: &str, config: &Value) -> bool {
        let whens = self.reserved_env.get(name).into_iter().flatten();
        whens
            .into_iter()
            .any(|when| when.as_ref().is_none_or(|when| when.holds(config)))
    }

    /// The settings that a started TrainJob is pinned to. The domains that controllers obey affect only plugins that write labels or
    /// annotations.
    #[must_use]
    pub fn pinned_settings(&self) -> PinnedSettings {
        let mut writes = self.manifest.claims.writes.iter();
        let is_affected = writes.any(|path| path.field.is_metadata());
        PinnedSettings::of(&self.settings, is_affected.then_some(&self.settings.obeyed))
    }

    /// Its configuration, with the defaults of its schema filled in.
    ///
    /// # Errors
    /// All errors, each with its field. A plugin without a schema takes no configuration.
    pub fn config(&self, mut config: Value) -> Result<Arc<Value>, Vec<ConfigError>> {
        complete(self.manifest.config_schema.as_ref(), &mut config, NO_CONFIG)?;
        Ok(Arc::new(config))
    }
}

/// The env vars that the plugin reserves, by name.
fn reserved_env(manifest: &Manifest) -> BTreeMap<String, Vec<Option<ConfigCondition>>> {
    let mut reserved: BTreeMap<String, Vec<Option<ConfigCondition>>> = BTreeMap::new();
    for some in &manifest.reserved_env {
        for name in some.names() {
            let whens = reserved.entry(name.clone()).or_default();
            whens.push(some.when().cloned());
        }
    }
    reserved
}

/// The errors for pod sets of `nodeSets` whose count is not granted.
fn node_sets_not_granted(manifest: &Manifest, settings: &Settings) -> Vec<ClaimError> {
    let counts = manifest.node_sets.iter().map(NodeSet::count);
    counts
        .filter(|count| !settings.grants.allow(count, &settings.obeyed))
        .map(|count| ClaimError::NodeSetNotGranted {
            path: count.to_string(),
        })
        .collect()
}

const NO_CONFIG: &str = "this plugin takes no configuration";
const NO_OPERATOR_CONFIG: &str = "this plugin takes no configuration from the operator, because its manifest has no `operatorConfigSchema`; set its configuration in the runtime";

/// Fills in defaults and validates. Null counts as an empty object.
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
            field: FieldPath::root(),
            problem: none.to_owned(),
        }]),
    }
}

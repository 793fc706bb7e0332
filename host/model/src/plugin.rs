//! A loaded plugin: who it is, what it declares, what the operator allows and sets.

use std::{fmt, sync::Arc};

use jsonschema::Validator;
use serde_json::Value;
use thiserror::Error;

use crate::{
    claims::{ClaimError, Compiled, Grants},
    limits::Limits,
    manifest::Manifest,
    text::clean,
};

/// What the operator sets for a plugin.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it may write beyond the default.
    pub grants: Grants,
    /// What a call may use.
    pub limits: Limits,
    /// Its operator configuration.
    pub operator_config: Arc<Value>,
    /// Plugins that run before it where both write a path, beside the manifest's.
    pub after: Vec<String>,
    /// Plugins that run after it where both write a path, beside the manifest's.
    pub before: Vec<String>,
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
    pub claims: Arc<Compiled>,
    /// What the operator set.
    pub settings: Settings,
    config_schema: Option<Validator>,
}

/// Why a plugin is not loaded.
#[derive(Debug, Error)]
pub enum PluginError {
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
    #[error("plugin {id}: {}", join(errors))]
    Claims {
        /// The plugin.
        id: PluginId,
        /// All that is wrong.
        errors: Vec<ClaimError>,
    },
    /// The operator's configuration fails the plugin's schema.
    #[error("plugin {id}: `config` in the policy file: {}", join(errors))]
    OperatorConfig {
        /// The plugin.
        id: PluginId,
        /// All that is wrong.
        errors: Vec<ConfigError>,
    },
    /// The manifest's schema does not compile.
    #[error("plugin {id}: its `{field}` is no JSON Schema: {problem}")]
    Schema {
        /// The plugin.
        id: PluginId,
        /// The manifest's field.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
}

fn join<E: fmt::Display>(errors: &[E]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{problem}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct ConfigError {
    /// RFC 6901 pointer into the configuration.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

impl Plugin {
    /// A plugin of that manifest and content under those settings.
    ///
    /// # Errors
    /// A digest that the settings do not accept; all claims that are impossible or beyond the grants; a schema that does not compile; an operator configuration
    /// that fails its schema.
    pub fn new(
        manifest: Manifest,
        digest: &str,
        mut settings: Settings,
    ) -> Result<Self, PluginError> {
        let id = PluginId {
            name: manifest.name.as_str().into(),
            version: manifest.version.as_str().into(),
            digest: digest.into(),
        };
        if let Some(wanted) = settings.digest.take_if(|wanted| *wanted != *id.digest) {
            return Err(PluginError::Digest { id, wanted });
        }
        let claims = Compiled::new(&manifest.claims, &settings.grants).map_err(|errors| {
            PluginError::Claims {
                id: id.clone(),
                errors,
            }
        })?;
        let config_schema = compile(&id, "configSchema", manifest.config_schema.as_ref())?;
        let operator_schema = compile(
            &id,
            "operatorConfigSchema",
            manifest.operator_config_schema.as_ref(),
        )?;
        let mut operator_config = (*settings.operator_config).clone();
        complete(
            manifest.operator_config_schema.as_ref(),
            operator_schema.as_ref(),
            &mut operator_config,
        )
        .map_err(|errors| PluginError::OperatorConfig {
            id: id.clone(),
            errors,
        })?;
        settings.operator_config = Arc::new(operator_config);
        Ok(Self {
            id,
            manifest,
            claims: Arc::new(claims),
            settings,
            config_schema,
        })
    }

    /// Its configuration, with the defaults of its schema filled in.
    ///
    /// # Errors
    /// All that is wrong with it, each with its pointer. A plugin without a schema takes no configuration.
    pub fn config(&self, mut config: Value) -> Result<Arc<Value>, Vec<ConfigError>> {
        complete(
            self.manifest.config_schema.as_ref(),
            self.config_schema.as_ref(),
            &mut config,
        )?;
        Ok(Arc::new(config))
    }
}

fn compile(
    id: &PluginId,
    field: &'static str,
    schema: Option<&Value>,
) -> Result<Option<Validator>, PluginError> {
    schema
        .map(jsonschema::validator_for)
        .transpose()
        .map_err(|error| PluginError::Schema {
            id: id.clone(),
            field,
            problem: clean(&error.to_string()),
        })
}

/// Fills in defaults and validates.
fn complete(
    schema: Option<&Value>,
    validator: Option<&Validator>,
    config: &mut Value,
) -> Result<(), Vec<ConfigError>> {
    if config.is_null() {
        *config = Value::Object(serde_json::Map::new());
    }
    let (Some(schema), Some(validator)) = (schema, validator) else {
        let empty = config.as_object().is_some_and(serde_json::Map::is_empty);
        let problem = "this plugin takes no configuration".to_owned();
        return if empty {
            Ok(())
        } else {
            Err(vec![ConfigError {
                pointer: String::new(),
                problem,
            }])
        };
    };
    set_defaults(schema, config);
    let errors: Vec<_> = validator
        .iter_errors(config)
        .map(|error| ConfigError {
            pointer: error.instance_path().to_string(),
            problem: clean(&described(schema, &error)),
        })
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// The error, with what the vendor says of the value: which keyword refused it tells a person little.
fn described(schema: &Value, error: &jsonschema::ValidationError<'_>) -> String {
    let keyword = error.schema_path().to_string();
    let description = keyword
        .rmatch_indices('/')
        .filter_map(|(at, _)| keyword.get(..at))
        .find_map(|above| schema.pointer(above)?.get("description")?.as_str());
    match description {
        Some(description) => format!("{error}; {}", description.trim_end_matches('.')),
        None => error.to_string(),
    }
}

/// Sets the `default` of each absent property, as an API server does: parents first, so that a default object gets the
/// defaults of its own properties.
fn set_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, property) in schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                if let (None, Some(default)) = (object.get(name), property.get("default")) {
                    object.insert(name.clone(), default.clone());
                }
                if let Some(child) = object.get_mut(name) {
                    set_defaults(property, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| set_defaults(schema, item));
            }
        }
        _ => {}
    }
}

//! JSON Schemas of plugins' configurations.

use std::{fmt, sync::Arc};

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{text::clean, wording};

/// A JSON Schema that compiles.
#[derive(Clone)]
pub struct Schema {
    source: Value,
    validator: Arc<Validator>,
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

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it is none.
    pub fn new(source: Value) -> Result<Self, String> {
        match jsonschema::validator_for(&source) {
            Ok(validator) => Ok(Self {
                source,
                validator: Arc::new(validator),
            }),
            Err(error) => Err(format!(
                "it is no JSON Schema: {}",
                clean(&error.to_string())
            )),
        }
    }

    /// As its author wrote it.
    #[must_use]
    pub const fn source(&self) -> &Value {
        &self.source
    }

    /// Fills the defaults into a configuration and validates it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn complete(&self, config: &mut Value) -> Result<(), Vec<ConfigError>> {
        set_defaults(&self.source, config);
        let errors: Vec<_> = self
            .validator
            .iter_errors(config)
            .map(|error| ConfigError {
                pointer: error.instance_path().to_string(),
                problem: clean(&described(&self.source, &error)),
            })
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Schema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Schema".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Value::json_schema(generator)
    }
}

/// The error, with what the vendor says of the value: which keyword refused it tells a person little.
fn described(schema: &Value, error: &jsonschema::ValidationError<'_>) -> String {
    let problem = wording::problem(error);
    let keyword = error.schema_path().to_string();
    let description = keyword
        .rmatch_indices('/')
        .filter_map(|(at, _)| keyword.get(..at))
        .find_map(|above| schema.pointer(above)?.get("description")?.as_str());
    match description {
        Some(description) => format!("{problem}; {}", description.trim_end_matches('.')),
        None => problem,
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

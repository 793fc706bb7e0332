//! A PolicyPlugin, decoded and checked.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trainyard_api::{FieldPath, Location};
use trainyard_model::names::is_dns_label;

use super::{API_VERSION, DIGEST, DIGEST_WORDS, PolicyPluginSpec, check};
use crate::{ConfigError, ConfigSchema, decode};

/// What the operator wants for one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyPlugin {
    /// The plugin's name.
    pub name: String,
    /// `metadata.generation`, or 0 for an object that is not in a cluster.
    pub generation: i64,
    /// The settings.
    pub spec: PolicyPluginSpec,
    /// Where the object was read.
    pub location: Location,
    /// The field of the name.
    pub name_field: FieldPath,
    /// The field of `spec`, or of the entry of a policy file.
    pub spec_field: FieldPath,
}

/// The fields of the object.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object {
    /// `trainyard.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = API_VERSION))]
    _api_version: String,
    /// `PolicyPlugin`.
    #[serde(rename = "kind")]
    #[schemars(extend("const" = "PolicyPlugin"))]
    _kind: String,
    metadata: Metadata,
    /// The operator's settings for the plugin.
    spec: PolicyPluginSpec,
    /// Ignored.
    #[serde(default, rename = "status")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    _status: Option<Value>,
}

/// The metadata of the object. Further fields are Kubernetes' own.
#[derive(Deserialize, JsonSchema)]
struct Metadata {
    /// The plugin's name.
    #[schemars(length(min = 1, max = 63))]
    name: String,
    /// The generation of an object in a cluster.
    #[serde(default)]
    generation: i64,
}

/// The JSON Schema of the object.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(Object).to_value());

impl PolicyPlugin {
    /// Decodes and checks a PolicyPlugin without nulls.
    ///
    /// # Errors
    /// All that is wrong with it, with fields.
    pub fn decode(object: &Value, location: Location) -> Result<Self, Vec<ConfigError>> {
        let schema = ConfigSchema {
            schema: &SCHEMA,
            patterns: &[(DIGEST, DIGEST_WORDS)],
        };
        let Object { metadata, spec, .. } = decode(object, &location, &schema, |object, _| {
            check::object(object)
        })?;
        Ok(Self {
            name: metadata.name,
            generation: metadata.generation,
            spec,
            location,
            name_field: FieldPath::of(["metadata", "name"]),
            spec_field: FieldPath::of(["spec"]),
        })
    }

    /// Returns a PolicyPlugin that is wrong and disabled, as far as it matters: it disables the plugin of its name. `None` if it is not disabled,
    /// or has a name that no plugin has.
    #[must_use]
    pub fn decode_disabled(object: &Value, location: Location) -> Option<Self> {
        let disabled = object.pointer("/spec/disabled");
        let name = object.pointer("/metadata/name")?.as_str()?;
        let is_disabled = disabled == Some(&Value::Bool(true)) && is_dns_label(name);
        let generation = object.pointer("/metadata/generation");
        is_disabled.then(|| Self {
            name: name.to_owned(),
            generation: generation.and_then(Value::as_i64).unwrap_or_default(),
            spec: PolicyPluginSpec {
                disabled: true,
                ..PolicyPluginSpec::default()
            },
            location,
            name_field: FieldPath::of(["metadata", "name"]),
            spec_field: FieldPath::of(["spec"]),
        })
    }

    /// Returns the location of a field of `spec`.
    #[must_use]
    pub fn at(&self, field: &str) -> Location {
        self.location.clone().at(self.spec_field.field(field))
    }
}

/// Returns the JSON Schema of a PolicyPlugin.
#[must_use]
pub fn schema() -> Value {
    SCHEMA.clone()
}

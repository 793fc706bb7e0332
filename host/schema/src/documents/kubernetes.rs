//! Kubernetes' types as structural schemas, from its own OpenAPI document.
//!
//! Differences between the OpenAPI document and a structural schema:
//! - References are expanded, because a CRD cannot have any.
//! - Required fields have no default. The document gives them the zero value of their Go type, which would hide that a field is missing.
//!   The same holds for items, for objects with the default `{}`, and for the fields in [`SERVER_DEFAULTS`].
//! - Metadata in a template has the fields that the template's author can use. Quantities and int-or-string values have the schema that
//!   an API server expects.
//! - The keywords for patches (`x-kubernetes-patch-*`) and unions (`x-kubernetes-unions`) are not part of a structural schema.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use trainyard_structural::REFERENCE;

use super::error::DocumentError;

/// The pinned document. The README beside it has its source.
const PINNED: &str = include_str!("../../documents/kubernetes/batch-v1.json");

static DEFINITIONS: LazyLock<Result<Map<String, Value>, String>> =
    LazyLock::new(|| serde_json::from_str(PINNED).map_err(|error| error.to_string()));

/// The pattern of a quantity in an API server's own types.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The keywords with the same meaning in both.
const SAME: &[&str] = &[
    "enum",
    "format",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The keywords that a structural schema does not have.
const IGNORED: &[&str] = &[
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// What a reference to another type becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// The other type.
    Expanded,
    /// A reference to its name, unless other keywords are beside the reference.
    Kept,
}

/// Returns the schema of a type; `None` if the document does not have it.
pub(super) fn schema(
    name: &str,
    references: References,
) -> Result<Option<Map<String, Value>>, DocumentError> {
    let special = match name.rsplit('.').next() {
        Some("Quantity") => Some(json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY, "x-kubernetes-int-or-string": true,
        })),
        Some("IntOrString") => Some(json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
        })),
        Some("ObjectMeta") => Some(embedded_metadata()),
        _ => None,
    };
    if let Some(Value::Object(special)) = special {
        return Ok(Some(special));
    }
    let definitions = DEFINITIONS
        .as_ref()
        .map_err(|error| DocumentError::Pinned(error.clone()))?;
    match definitions.get(name) {
        Some(definition) => convert(definition, name, false, references).map(Some),
        None => Ok(None),
    }
}

/// Returns the schema of the metadata in a template.
fn embedded_metadata() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "annotations": texts, "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": texts, "name": {"type": "string"}, "namespace": {"type": "string"},
        },
    })
}

/// Fields, by type and name, with a zero value as default only because their Go type has no null. An API server sets another default
/// (`True`), so none is set here.
const SERVER_DEFAULTS: [(&str, &str); 1] = [(
    "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern",
    "status",
)];

/// Converts a schema of the document. `filled` is set if its value is never missing, so that it needs no default.
fn convert(
    schema: &Value,
    name: &str,
    filled: bool,
    references: References,
) -> Result<Map<String, Value>, DocumentError> {
    let mut out = Map::new();
    let Some(keywords) = schema.as_object() else {
        return Ok(out);
    };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            (REFERENCE, Value::String(reference)) => out.extend(referenced(reference, references)?),
            ("allOf", Value::Array(parts)) => {
                for part in parts {
                    out.extend(convert(part, name, true, references)?);
                }
            }
            ("properties", Value::Object(properties)) => {
                let properties = converted(properties, schema, name, references)?;
                out.insert(keyword.clone(), Value::Object(properties));
            }
            ("items" | "additionalProperties", value) => {
                let value = convert(value, name, true, references)?;
                out.insert(keyword.clone(), Value::Object(value));
            }
            ("default", value) => {
                if !filled && *value != json!({}) {
                    out.insert(keyword.clone(), value.clone());
                }
            }
            (same, value) if SAME.contains(&same) => {
                out.insert(keyword.clone(), value.clone());
            }
            (ignored, _) if IGNORED.contains(&ignored) => {}
            _ => {
                return Err(DocumentError::UnknownKeyword {
                    name: name.to_owned(),
                    keyword: keyword.clone(),
                });
            }
        }
    }
    alone_or_filled(out)
}

/// Expands a reference that has other keywords beside it, which is not allowed.
fn alone_or_filled(mut schema: Map<String, Value>) -> Result<Map<String, Value>, DocumentError> {
    if schema.len() < 2 {
        return Ok(schema);
    }
    let Some(Value::String(name)) = schema.shift_remove(REFERENCE) else {
        return Ok(schema);
    };
    let mut filled = type_of(&name, References::Kept)?;
    filled.extend(schema);
    Ok(filled)
}

fn referenced(
    reference: &str,
    references: References,
) -> Result<Map<String, Value>, DocumentError> {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    match references {
        References::Expanded => type_of(name, references),
        References::Kept => Ok(Map::from_iter([(REFERENCE.to_owned(), name.into())])),
    }
}

fn type_of(name: &str, references: References) -> Result<Map<String, Value>, DocumentError> {
    schema(name, references)?.ok_or_else(|| {
        DocumentError::Pinned(format!("it refers to `{name}`, which it does not define"))
    })
}

fn converted(
    properties: &Map<String, Value>,
    of: &Value,
    name: &str,
    references: References,
) -> Result<Map<String, Value>, DocumentError> {
    let required = of.get("required").and_then(Value::as_array);
    let is_required =
        |property: &str| required.is_some_and(|names| names.iter().any(|name| name == property));
    properties
        .iter()
        .map(|(property, schema)| {
            let filled =
                is_required(property) || SERVER_DEFAULTS.contains(&(name, property.as_str()));
            let schema = convert(schema, name, filled, references)?;
            Ok((property.clone(), Value::Object(schema)))
        })
        .collect()
}

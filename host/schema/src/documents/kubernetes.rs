//! Kubernetes' types as structural schemas, from its own OpenAPI document.
//!
//! What an OpenAPI document says in another way than a structural schema:
//! - references are filled in, since a CRD can have none;
//! - a required field has no default here: the document gives it the zero value of its Go type, which would hide that it is
//!   missing. So do items, and `{}` for objects, whose own fields have their defaults, and what [`SERVER_FILLS`] lists;
//! - metadata inside a template has the fields that a template's author can use; a quantity and a number-or-text have the
//!   form that an API server knows;
//! - how a patch merges (`x-kubernetes-patch-*`) and which fields exclude one another (`x-kubernetes-unions`) is no part of a
//!   structural schema.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::DocumentError;
use trainyard_structural::REFERENCE;

/// The pinned document; the README beside it says where it is from.
const PINNED: &str = include_str!("../../documents/kubernetes/batch-v1.json");

static DEFINITIONS: LazyLock<Result<Map<String, Value>, String>> =
    LazyLock::new(|| serde_json::from_str(PINNED).map_err(|error| error.to_string()));

/// What a quantity looks like, as an API server's own types say it.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The keywords that mean the same in both.
const SAME: &[&str] = &[
    "enum",
    "format",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The keywords that a structural schema does without.
const LEFT_OUT: &[&str] = &[
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// What stands where a type refers to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// The other one.
    Filled,
    /// Its name, unless more is said at that place than the name.
    Kept,
}

/// The schema of a type; none where the document does not have it.
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

/// What a template's author can say in its metadata.
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

/// Fields, by type and name, that have a zero value as their default only because their Go type can't be absent: an API server
/// fills in another value where nothing is said (`True`), and nothing is invented here.
const SERVER_FILLS: [(&str, &str); 1] = [(
    "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern",
    "status",
)];

/// A schema of the document as a structural one; `filled` is one that has a value in any case, so that it needs no default.
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
            (left_out, _) if LEFT_OUT.contains(&left_out) => {}
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

/// A reference can't have anything beside it: there, the type is filled in.
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
        References::Filled => type_of(name, references),
        References::Kept => Ok(Map::from_iter([(REFERENCE.to_owned(), name.into())])),
    }
}

fn type_of(name: &str, references: References) -> Result<Map<String, Value>, DocumentError> {
    schema(name, references)?.ok_or_else(|| {
        DocumentError::Pinned(format!("it refers to `{name}`, which it does not have"))
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
            let filled = is_required(property) || SERVER_FILLS.contains(&(name, property.as_str()));
            let schema = convert(schema, name, filled, references)?;
            Ok((property.clone(), Value::Object(schema)))
        })
        .collect()
}

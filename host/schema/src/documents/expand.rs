//! Expansion of placeholders.

use serde_json::{Map, Value};
use trainyard_structural::REFERENCE;

use super::{
    error::DocumentError,
    kubernetes::{self, References},
    ours, unions,
};

/// The member that makes an object a placeholder for one of Kubernetes' types; its value is the name of the type.
const PLACEHOLDER: &str = "$kubernetes";
/// The member that makes an object a placeholder for another of our documents.
const DOCUMENT: &str = "$document";
/// The member of a union to which plugins add members.
const UNION: &str = "$union";

/// Expands all placeholders of a document.
///
/// # Errors
/// The first placeholder that cannot be expanded, with its JSON pointer.
pub fn expand(document: &Value) -> Result<Value, DocumentError> {
    below(document, "", References::Expanded)
}

/// Expands all placeholders, but keeps references to Kubernetes' types.
pub(super) fn expand_compactly(document: &Value) -> Result<Value, DocumentError> {
    below(document, "", References::Kept)
}

fn below(value: &Value, place: &str, references: References) -> Result<Value, DocumentError> {
    match value {
        Value::Object(object) => {
            let mut out = match (object.get(PLACEHOLDER), object.get(DOCUMENT)) {
                (None, None) => Map::new(),
                (Some(Value::String(name)), None) => {
                    named(name, place, references, object.len() == 1)?
                }
                (None, Some(Value::String(name))) => document(name, place, references)?,
                _ => {
                    let place = place.to_owned();
                    return Err(DocumentError::NoName { place });
                }
            };
            let is_placeholder = |key: &str| [PLACEHOLDER, DOCUMENT, UNION].contains(&key);
            for (key, value) in object.iter().filter(|(key, _)| !is_placeholder(key)) {
                let value = below(value, &format!("{place}/{}", escaped(key)), references)?;
                out.insert(key.clone(), value);
            }
            if let Some(union) = object.get(UNION) {
                unions::complete(union, &mut out, |member| below(member, place, references))?;
            }
            Ok(Value::Object(out))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| below(item, &format!("{place}/{at}"), references));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        other => Ok(other.clone()),
    }
}

/// Returns one of Kubernetes' types, or a reference to it if the placeholder is `alone`.
fn named(
    name: &str,
    place: &str,
    references: References,
    alone: bool,
) -> Result<Map<String, Value>, DocumentError> {
    let schema = kubernetes::schema(name, references)?;
    let schema = schema.ok_or_else(|| DocumentError::UnknownType {
        place: place.to_owned(),
        name: name.to_owned(),
    })?;
    Ok(match references {
        References::Kept if alone => Map::from_iter([(REFERENCE.to_owned(), name.into())]),
        _ => schema,
    })
}

/// Returns another document, with its placeholders expanded.
fn document(
    name: &str,
    place: &str,
    references: References,
) -> Result<Map<String, Value>, DocumentError> {
    let Some(text) = ours::text(name) else {
        return Err(DocumentError::UnknownDocument {
            place: place.to_owned(),
            name: name.to_owned(),
        });
    };
    match below(&ours::read(name, text)?, "", references)? {
        Value::Object(schema) => Ok(schema),
        _ => Ok(Map::new()),
    }
}

/// Escapes a key for a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

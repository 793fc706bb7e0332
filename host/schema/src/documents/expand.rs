//! Placeholders for Kubernetes' types become the types.

use serde_json::{Map, Value};
use thiserror::Error;

use super::kubernetes;

/// The member that makes an object of a document a placeholder: its value names the type.
const PLACEHOLDER: &str = "$kubernetes";

/// Why a document gives no schema.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DocumentError {
    /// A placeholder for a type that the pinned document of Kubernetes does not have.
    #[error(
        "{place}: Kubernetes' document has no type `{name}`; host/schema/documents/kubernetes says which it has"
    )]
    UnknownType {
        /// The placeholder, as a JSON pointer into the document.
        place: String,
        /// The type that it names.
        name: String,
    },
    /// A placeholder that names no type.
    #[error("{place}: `{PLACEHOLDER}` must be the name of a type")]
    NoName {
        /// The placeholder.
        place: String,
    },
    /// A keyword of Kubernetes' document that nobody has decided on.
    #[error("{name}: the keyword `{keyword}` of Kubernetes' document is not known here")]
    UnknownKeyword {
        /// The type.
        name: String,
        /// The keyword.
        keyword: String,
    },
    /// The pinned document is broken.
    #[error("Kubernetes' document can't be read: {0}")]
    Pinned(String),
}

/// Fills every placeholder of a document.
///
/// # Errors
/// The first placeholder that nothing fills, with its place.
pub fn expand(document: &Value) -> Result<Value, DocumentError> {
    below(document, "")
}

fn below(value: &Value, place: &str) -> Result<Value, DocumentError> {
    match value {
        Value::Object(object) => {
            let mut out = match object.get(PLACEHOLDER) {
                None => Map::new(),
                Some(Value::String(name)) => named(name, place)?,
                Some(_) => {
                    let place = place.to_owned();
                    return Err(DocumentError::NoName { place });
                }
            };
            for (key, value) in object.iter().filter(|(key, _)| *key != PLACEHOLDER) {
                let value = below(value, &format!("{place}/{}", escaped(key)))?;
                out.insert(key.clone(), value);
            }
            Ok(Value::Object(out))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| below(item, &format!("{place}/{at}")));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        other => Ok(other.clone()),
    }
}

fn named(name: &str, place: &str) -> Result<Map<String, Value>, DocumentError> {
    kubernetes::schema(name)?.ok_or_else(|| DocumentError::UnknownType {
        place: place.to_owned(),
        name: name.to_owned(),
    })
}

/// A key as a segment of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

//! Placeholders for Kubernetes' types become the types.

use serde_json::{Map, Value};
use thiserror::Error;

use super::kubernetes::{self, References};
use super::ours;
use trainyard_structural::{CompileError, REFERENCE};

/// The member that makes an object of a document a placeholder for one of Kubernetes' types: its value names the type.
const PLACEHOLDER: &str = "$kubernetes";
/// The same for another document of ours.
const DOCUMENT: &str = "$document";

/// Why a document gives no schema.
#[derive(Debug, Error)]
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
    /// A placeholder for a document that is not there.
    #[error("{place}: there is no document `{name}` in host/schema/documents")]
    UnknownDocument {
        /// The placeholder.
        place: String,
        /// The document that it names.
        name: String,
    },
    /// A document that is no YAML.
    #[error("the document `{name}`: {problem}")]
    Yaml {
        /// The document.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The schema that a document gives does not compile.
    #[error("the document `{name}`: {problem}")]
    Schema {
        /// The document.
        name: String,
        /// What is wrong with it.
        problem: CompileError,
    },
    /// A placeholder that names no type.
    #[error("{place}: `{PLACEHOLDER}` and `{DOCUMENT}` must be names")]
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
    /// The generated file is broken.
    #[error("host/schema/documents/compact.json can't be read: {0}")]
    Generated(String),
    /// The pinned document is broken.
    #[error("Kubernetes' document can't be read: {0}")]
    Pinned(String),
}

/// Fills every placeholder of a document.
///
/// # Errors
/// The first placeholder that nothing fills, with its place.
pub fn expand(document: &Value) -> Result<Value, DocumentError> {
    below(document, "", References::Filled)
}

/// The same, where references to Kubernetes' types stay.
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
            let is_placeholder = |key: &str| key == PLACEHOLDER || key == DOCUMENT;
            for (key, value) in object.iter().filter(|(key, _)| !is_placeholder(key)) {
                let value = below(value, &format!("{place}/{}", escaped(key)), references)?;
                out.insert(key.clone(), value);
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

/// One of Kubernetes' types; a reference to it where nothing stands beside the placeholder.
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

/// Another document of ours, with its placeholders filled.
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

/// A key as a segment of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

//! The schemas in the form that this program compiles: each of Kubernetes' types stands there once, and others refer to it.
//!
//! Reading and converting the documents takes longer than a whole rendering. So what becomes of them stands in a generated file, and a
//! test compares it with the documents.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::kubernetes::{self, References};
use super::{DocumentError, Kind, expand};
use trainyard_structural::{CompileError, Definitions, REFERENCE, Schema};

const GENERATED: &str = include_str!("../../documents/compact.json");

static COMPACT: LazyLock<Result<Compact, String>> =
    LazyLock::new(|| serde_json::from_str(GENERATED).map_err(|error| error.to_string()));

#[derive(Deserialize)]
struct Compact {
    documents: Map<String, Value>,
    definitions: Definitions,
}

/// What `documents/compact.json` holds: the documents of all kinds, and the types that they refer to.
///
/// # Errors
/// A placeholder that nothing fills.
pub fn compact() -> Result<Value, DocumentError> {
    let mut documents = Map::new();
    for kind in Kind::ALL {
        let document = json!({ "$document": kind.document() });
        let schema = expand::expand_compactly(&document)?;
        documents.insert(kind.document().to_owned(), schema);
    }
    let mut definitions = Map::new();
    let mut names: Vec<_> = documents.values().flat_map(referred).collect();
    while let Some(name) = names.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let definition = kubernetes::schema(&name, References::Kept)?.unwrap_or_default();
        let definition = Value::Object(definition);
        names.extend(referred(&definition));
        definitions.insert(name, definition);
    }
    definitions.sort_keys();
    Ok(json!({"documents": documents, "definitions": definitions}))
}

/// The types that a schema refers to.
fn referred(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => match members.get(REFERENCE) {
            Some(Value::String(name)) => vec![name.clone()],
            _ => members.values().flat_map(referred).collect(),
        },
        Value::Array(items) => items.iter().flat_map(referred).collect(),
        _ => Vec::new(),
    }
}

/// Compiles the schema of a kind.
pub(super) fn structural(kind: Kind) -> Result<Schema, DocumentError> {
    let unreadable = |error: &String| DocumentError::Generated(error.clone());
    let compact = COMPACT.as_ref().map_err(unreadable)?;
    let schema = compact.documents.get(kind.document());
    let schema = schema.unwrap_or(&Value::Null);
    let compiled = Schema::compile_lazily(schema, &compact.definitions);
    compiled.map_err(|problem: CompileError| kind.not_compiled(problem))
}

//! The schemas in the form that this program compiles, in which each of Kubernetes' types is defined once and referred to.
//!
//! Parsing and converting the documents takes longer than a whole rendering. The result is therefore a generated file, which a test
//! compares with the documents.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use trainyard_structural::{Definitions, REFERENCE, Schema};

use super::{
    error::DocumentError,
    expand,
    kind::Kind,
    kubernetes::{self, References},
};

const GENERATED: &str = include_str!("../../documents/compact.json");

static COMPACT: LazyLock<Result<Compact, String>> =
    LazyLock::new(|| serde_json::from_str(GENERATED).map_err(|error| error.to_string()));

#[derive(Deserialize)]
struct Compact {
    documents: Map<String, Value>,
    definitions: Definitions,
}

/// Returns the content of `documents/compact.json`: the documents of all kinds, and the types to which they refer.
///
/// # Errors
/// A placeholder that cannot be expanded.
pub fn compact() -> Result<Value, DocumentError> {
    let mut documents = Map::new();
    for kind in Kind::ALL {
        let document = json!({ "$document": kind.document() });
        let schema = expand::expand_compactly(&document)?;
        documents.insert(kind.document().to_owned(), schema);
    }
    let mut definitions = Map::new();
    let mut names: Vec<_> = documents.values().flat_map(references).collect();
    while let Some(name) = names.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let definition = kubernetes::schema(&name, References::Kept)?.unwrap_or_default();
        let definition = Value::Object(definition);
        names.extend(references(&definition));
        definitions.insert(name, definition);
    }
    definitions.sort_keys();
    Ok(json!({"documents": documents, "definitions": definitions}))
}

/// Returns the types to which a schema refers.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => match members.get(REFERENCE) {
            Some(Value::String(name)) => vec![name.clone()],
            _ => members.values().flat_map(references).collect(),
        },
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

impl Kind {
    /// Returns the compiled schema. Patterns and rules are compiled when they are first needed.
    ///
    /// # Errors
    /// The generated file is invalid.
    pub fn compiled_schema(self) -> Result<Schema, DocumentError> {
        let unreadable = |error: &String| DocumentError::Generated(error.clone());
        let compact = COMPACT.as_ref().map_err(unreadable)?;
        let schema = compact.documents.get(self.document());
        let schema = schema.unwrap_or(&Value::Null);
        Schema::compile_lazily(schema, &compact.definitions)
            .map_err(|problem| self.not_compiled(problem))
    }
}

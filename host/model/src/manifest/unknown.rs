//! Unknown keys of a manifest.

use std::fmt;

use serde_json::Value;

use super::Manifest;
use crate::text::{clean, nearest};

/// An unknown key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The object that has it, such as `claims` or `nodeSets[0]`; empty at the top level.
    pub place: String,
    /// The key.
    pub key: String,
    /// The keys that are valid there.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "`{}`: ", self.place)?;
        }
        write!(f, "unknown field `{}`; ", clean(&self.key))?;
        let known = self.known.iter().map(String::as_str);
        match nearest(&self.key, known) {
            Some(nearest) => write!(f, "did you mean `{nearest}`?"),
            None => write!(f, "valid fields are {}", self.known.join(", ")),
        }
    }
}

/// Finds all unknown keys of a manifest with its JSON Schema; serde stops at the first one.
pub(super) fn unknown_keys(manifest: &Value) -> Vec<UnknownKey> {
    let root = schemars::schema_for!(Manifest).to_value();
    let mut found = Vec::new();
    walk(&root, &root, manifest, "", &mut found);
    found
}

fn walk(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<UnknownKey>) {
    let schema = of_maps(root, schema);
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return;
            };
            for (at, item) in items.iter().enumerate() {
                walk(root, schema, item, &format!("{place}[{at}]"), found);
            }
        }
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (key, value) in members {
                match properties.get(key) {
                    None => found.push(UnknownKey {
                        place: place.to_owned(),
                        key: key.clone(),
                        known: properties.keys().cloned().collect(),
                    }),
                    Some(schema) if place.is_empty() => walk(root, schema, value, key, found),
                    Some(schema) => walk(root, schema, value, &format!("{place}.{key}"), found),
                }
            }
        }
        _ => {}
    }
}

/// Resolves a `$ref`, or an `anyOf` to the alternative for objects.
fn of_maps<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let definition = |reference: &str| root.pointer(reference.strip_prefix('#')?);
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(definition) = reference.and_then(definition) {
        return of_maps(root, definition);
    }
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    let mut alternatives = alternatives
        .into_iter()
        .flatten()
        .map(|one| of_maps(root, one));
    alternatives
        .find(|one| one.get("properties").is_some())
        .unwrap_or(schema)
}

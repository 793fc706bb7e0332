//! The unions of a runtime, `mlPolicy` and `podGroupPolicy`, to which built-in plugins add members.

use serde_json::{Map, Value, json};

use super::{error::DocumentError, ours};

/// The members: the union, the key, and the text of its schema. The file is generated from the folders of the plugins, which are not part of
/// this crate.
const MEMBERS: &[(&str, &str, &str)] = include!("../../documents/union-members.rs");

/// Returns the keys that plugins add to a union.
pub fn union_keys(union: &str) -> impl Iterator<Item = &'static str> {
    let members = MEMBERS.iter().filter(move |(of, ..)| *of == union);
    members.map(|(_, key, _)| *key)
}

/// Adds to the schema of a union its members, each expanded, and the rule that at most one is set. `$union` has the union's name, its members
/// that belong to no plugin, and the message of the rule.
pub(super) fn complete(
    union: &Value,
    schema: &mut Map<String, Value>,
    expand: impl Fn(&Value) -> Result<Value, DocumentError>,
) -> Result<(), DocumentError> {
    let name = text(union.get("of"));
    let members = MEMBERS.iter().filter(|(of, ..)| *of == name);
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut keys = Vec::new();
    for (_, key, document) in members {
        properties.insert((*key).to_owned(), expand(&ours::read(key, document)?)?);
        keys.push(*key);
    }
    let message = text(union.get("message"));
    let also = union.get("also").and_then(Value::as_array);
    keys.extend(also.into_iter().flatten().map(|key| text(Some(key))));
    let set: Vec<_> = keys.iter().map(|key| format!("has(self.{key})")).collect();
    let rule = format!("[{}].filter(x, x).size() <= 1", set.join(", "));
    schema.insert("properties".to_owned(), properties.into());
    schema.insert(
        "x-kubernetes-validations".to_owned(),
        json!([{"rule": rule, "message": message}]),
    );
    Ok(())
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

//! Objects as they will be stored. Before it calls webhooks, an API server has not generated the names of objects with `generateName`.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// As long as the part of a name that an API server generates.
const GENERATED: &str = "xxxxx";

/// Returns the name of an object, with a stand-in for a part that is generated later.
pub(super) fn name(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").filter(|name| !name.is_empty());
    let generated = || {
        format!(
            "{}{GENERATED}",
            text("/metadata/generateName").unwrap_or_default()
        )
    };
    name.map_or_else(generated, str::to_owned)
}

/// Returns the text of an object as the watch would get it. The metadata that only an API server sets has stand-ins if it is missing.
pub(super) fn text(object: &Value) -> String {
    let mut stored = object.clone();
    let name = name(object);
    if let Some(metadata) = stored.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), name.into());
        metadata.shift_remove("managedFields");
        for (field, value) in [
            ("uid", json!("")),
            ("creationTimestamp", json!(Timestamp::now())),
        ] {
            if metadata.get(field).is_none_or(Value::is_null) {
                metadata.insert(field.to_owned(), value);
            }
        }
    }
    stored.to_string()
}

/// Whether an object is being deleted.
pub(super) fn is_deleted(object: &Value) -> bool {
    let at = object.pointer("/metadata/deletionTimestamp");
    at.is_some_and(|at| !at.is_null())
}

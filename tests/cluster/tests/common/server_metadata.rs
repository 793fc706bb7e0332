//! Metadata that the API server sets.

use serde_json::Value;

const OF_THE_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "namespace",
    "resourceVersion",
    "uid",
];

/// Removes it from an object. Clients only pass it through.
pub(crate) fn without_server_metadata(mut object: Value) -> Value {
    if let Some(metadata) = object
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut)
    {
        metadata.retain(|key, _| !OF_THE_SERVER.contains(&key.as_str()));
    }
    object
}

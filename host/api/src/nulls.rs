//! Nulls, as an API server prunes them.

use serde_json::Value;

/// Removes every key whose value is null, at any depth, as an API server does with fields that may not be null.
///
/// Templates that leave `initContainers: null` or `resources: {requests: null}` behind mean the same as those that leave the
/// field out. Nulls in lists stay: an API server refuses them, and so do the typed readers.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

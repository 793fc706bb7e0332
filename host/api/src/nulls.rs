//! Pruning of nulls.

use serde_json::Value;

/// Removes every key whose value is null, at any depth, as an API server does for fields that are not nullable.
///
/// A template with `initContainers: null` or `resources: {requests: null}` means the same as one without the field. Nulls in lists are
/// kept, because an API server and the typed readers refuse them.
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

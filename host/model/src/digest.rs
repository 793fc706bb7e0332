//! Digests of JSON values.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names::sha256_digest;

/// The digest of a value as JSON without white space and with sorted keys: `sha256:` and 64 hexadecimal digits.
#[must_use]
pub fn canonical_digest(value: &Value) -> String {
    sha256_digest(canonical(value))
}

/// The value as JSON with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<_, _> = object.iter().collect();
            let members = sorted
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items = items.iter().map(canonical);
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

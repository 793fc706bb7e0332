//! Advice on what to write instead of a value that a schema refuses, if the value shows what was meant.

use serde_json::Value;
use trainyard_api::{fields::value_at, path::Segment};
use trainyard_structural::{Violation, ViolationKind};

/// How amounts of resources are written.
const AMOUNT: &str = "write an amount such as `4`, `500m` or `800Gi`";

/// Returns advice on the value of a violation. `scalar` is the text of the value in its file, if it has no quotes there.
pub(crate) fn of(violation: &Violation, object: &Value, scalar: Option<&str>) -> Option<String> {
    let segments = violation.path.segments();
    let value = value_at(object, segments)?;
    let of_resource = match segments {
        [
            ..,
            Segment::Field(list),
            Segment::Field(name) | Segment::Key(name),
        ] if matches!(list.as_str(), "limits" | "requests") => Some(name),
        _ => None,
    };
    match (violation.kind, value) {
        (ViolationKind::WrongType, Value::Number(_))
            if of_resource.is_some_and(|name| name.contains('/')) =>
        {
            Some("devices are counted in whole numbers".to_owned())
        }
        (ViolationKind::WrongType, Value::Number(_) | Value::Bool(_))
            if violation.detail.contains("string") =>
        {
            // The value does not tell how it is meant: for YAML, `1.10` is 1.1, and `yes` is true.
            let quoted = scalar.map(|text| format!(": \"{text}\""));
            Some(format!("write it in quotes{}", quoted.unwrap_or_default()))
        }
        (ViolationKind::WrongType, Value::String(text))
            if violation.detail.contains("integer") && text.parse::<i64>().is_ok() =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        (ViolationKind::Invalid, Value::String(_)) if of_resource.is_some() => {
            Some(AMOUNT.to_owned())
        }
        _ => None,
    }
}

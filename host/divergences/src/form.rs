//! The form of a value that is equal for values which Kubernetes treats as equal.
//!
//! Lists that Kubernetes merges by a key become maps by that key. If the order of such a list matters, its meaning is added: the order of
//! init containers and of replicated jobs, and what each env var can expand.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use trainyard_model::quantity::Quantity;

/// Lists whose items have a key.
const KEYED: [(&str, &str); 16] = [
    ("claims", "name"),
    ("containers", "name"),
    ("dependsOn", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("items", "path"),
    ("ports", "containerPort"),
    ("replicatedJobs", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

/// Lists without a meaningful order.
const SETS: [&str; 4] = [
    "tolerations",
    "topologySpreadConstraints",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
];

/// Keyed lists with a meaningful order.
const ORDERED: [&str; 2] = ["initContainers", "replicatedJobs"];

/// Empty objects with a meaning.
const SAYING: [&str; 2] = ["emptyDir", "labelSelector"];

/// Returns the normal form of a value, in which nothing but its fields counts.
pub(crate) fn form(value: &Value) -> Value {
    below("", value)
}

fn below(field: &str, value: &Value) -> Value {
    match value {
        Value::Object(map)
            if ["limits", "requests", "capacity", "overhead", "minResources"].contains(&field) =>
        {
            map.iter()
                .map(|(key, value)| (key.clone(), quantity(value)))
                .collect()
        }
        Value::Object(map) => object(map),
        Value::Array(items) => array(field, items),
        _ if ["sizeLimit", "divisor"].contains(&field) => quantity(value),
        _ => value.clone(),
    }
}

fn object(map: &Map<String, Value>) -> Value {
    let members = map
        .iter()
        .map(|(field, value)| (field.clone(), below(field, value)));
    members
        .filter(|(field, value)| !says_nothing(field, value))
        .collect()
}

/// Returns whether a field means the same as its absence.
fn says_nothing(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && !SAYING.contains(&field),
        Value::String(text) => match field {
            "value" | "subPath" | "subPathExpr" | "status" => text.is_empty(),
            "divisor" => text == "0",
            "protocol" => text == "TCP",
            "type" => text == "Opaque",
            _ => false,
        },
        _ => false,
    }
}

fn array(field: &str, items: &[Value]) -> Value {
    if SETS.contains(&field) {
        let mut members: Vec<_> = items.iter().map(|item| below("", item)).collect();
        members.sort_by_key(Value::to_string);
        return members.into();
    }
    let key = KEYED.iter().find(|(list, _)| *list == field);
    let Some(mut keyed) = key.and_then(|(_, key)| by_key(key, items)) else {
        return items.iter().map(|item| below("", item)).collect();
    };
    if field == "env" {
        add_expansions(&mut keyed, items);
    }
    if ORDERED.contains(&field) {
        let names: Vec<_> = items.iter().map(|item| item["name"].clone()).collect();
        keyed.insert("order".to_owned(), names.into());
    }
    Value::Object(keyed)
}

/// Returns the items by their key, in brackets; `None` if a key is missing or duplicate.
fn by_key(key: &str, items: &[Value]) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    for item in items {
        let name = match (&item[key], &item["protocol"]) {
            (Value::String(name), _) => format!("[{name}]"),
            (Value::Number(port), Value::String(protocol)) if protocol != "TCP" => {
                format!("[{port}/{protocol}]")
            }
            (Value::Number(port), _) => format!("[{port}]"),
            _ => return None,
        };
        if map.insert(name, below("", item)).is_some() {
            return None;
        }
    }
    Some(map)
}

/// Adds, to each env var that references others of its list, those that it can expand because they precede it. The time is linear in the
/// bytes of the list.
fn add_expansions(keyed: &mut Map<String, Value>, items: &[Value]) {
    let places = items.iter().enumerate();
    let places: BTreeMap<_, _> = places
        .filter_map(|(place, item)| Some((item["name"].as_str()?, place)))
        .collect();
    for (&name, &own) in &places {
        let value = items.get(own).and_then(|item| item["value"].as_str());
        // `$$` is an escaped `$`.
        let value = value.unwrap_or_default().replace("$$", "");
        let references = value.split("$(").skip(1);
        let references =
            references.filter_map(|rest| places.get_key_value(rest.split_once(')')?.0));
        let references: BTreeSet<_> = references.map(|(name, place)| (place, name)).collect();
        if references.is_empty() {
            continue;
        }
        let expands = references.iter().filter(|(place, _)| **place < own);
        let expands: Vec<_> = expands.map(|(_, name)| *name).collect();
        let item = keyed.get_mut(&format!("[{name}]"));
        if let Some(item) = item.and_then(Value::as_object_mut) {
            item.insert("expands".to_owned(), json!(expands));
        }
    }
}

/// Returns a quantity in a canonical form.
fn quantity(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let exact = Quantity::parse(&text).and_then(|quantity| {
        let milli = format!("{}m", quantity.milli()?);
        let same = Quantity::parse(&milli)?.compare(quantity).is_eq();
        same.then_some(milli)
    });
    if exact.as_deref() == Some("0m") {
        return "0".into();
    }
    exact.unwrap_or(text).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    /// Returns the normal form of env vars.
    fn env(items: &[Value]) -> Value {
        below("", &json!({"env": items}))["env"].take()
    }

    #[test]
    fn env_vars_expand_those_before_them() {
        let items = [
            json!({"name": "A", "value": "$(C)"}),
            json!({"name": "B", "value": "$$(A) $(NONE) $(A"}),
            json!({"name": "C", "value": "$(B)$(A)$(B) $$$(D) $(C)"}),
            json!({"name": "D"}),
        ];
        let env = env(&items);
        let expands = |name: &str| env[format!("[{name}]")].get("expands").cloned();
        assert_eq!(expands("A"), Some(json!([])));
        assert_eq!(expands("B"), None);
        assert_eq!(expands("C"), Some(json!(["A", "B"])));
        assert_eq!(expands("D"), None);
    }

    /// With a search for each name in each value, this takes minutes.
    #[test]
    fn many_long_env_vars_are_read() {
        let value = "$(V0) text ".repeat(100);
        let items: Vec<_> = (0..10_000)
            .map(|number| json!({"name": format!("V{number}"), "value": value}))
            .collect();
        let env = env(&items);
        assert_eq!(env["[V0]"]["expands"], json!([]));
        assert_eq!(env["[V9999]"]["expands"], json!(["V0"]));
    }
}

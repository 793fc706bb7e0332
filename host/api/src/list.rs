//! Kubernetes' `List`: several objects in one document.

use serde_json::{Map, Value, json};

/// Returns a `v1` List of the objects.
pub fn list(items: Vec<Value>) -> Value {
    let mut list = Map::new();
    list.insert("apiVersion".to_owned(), json!("v1"));
    list.insert("kind".to_owned(), json!("List"));
    list.insert("items".to_owned(), Value::Array(items));
    Value::Object(list)
}

/// Returns the items of a `List`, or of any other kind with items whose name ends in `List`.
///
/// As in kubectl, an item of a typed list (`TrainJobList`) without a kind gets the kind of the list. `items: null` is an empty list.
///
/// # Errors
/// The unchanged value, if it is not a list of objects.
pub fn unpack(mut value: Value) -> Result<Vec<Value>, Value> {
    let kind = value.get("kind").and_then(Value::as_str);
    let Some(item_kind) = kind.and_then(|kind| kind.strip_suffix("List")) else {
        return Err(value);
    };
    let item_kind = item_kind.to_owned();
    let api_version = value.get("apiVersion").cloned();
    let items = match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None if item_kind.is_empty() => Vec::new(),
        Some(other) => {
            if let Some(items) = value.get_mut("items") {
                *items = other;
            }
            return Err(value);
        }
        None => return Err(value),
    };
    let fill = |item: Value| match (item, &api_version) {
        (Value::Object(map), Some(api_version))
            if !item_kind.is_empty() && !map.contains_key("kind") =>
        {
            let mut filled = Map::new();
            filled.insert("apiVersion".to_owned(), api_version.clone());
            filled.insert("kind".to_owned(), json!(item_kind));
            filled.extend(map);
            Value::Object(filled)
        }
        (item, _) => item,
    };
    Ok(items.into_iter().map(fill).collect())
}

//! Kubernetes' `List`: several objects in one document.

use serde_json::{Map, Value, json};

/// One `v1` List of the objects, in their order.
pub fn list(items: Vec<Value>) -> Value {
    let mut list = Map::new();
    list.insert("apiVersion".to_owned(), json!("v1"));
    list.insert("kind".to_owned(), json!("List"));
    list.insert("items".to_owned(), Value::Array(items));
    Value::Object(list)
}

/// The items of a `List`, or of any other kind whose name ends so and which has items; None for every other value.
///
/// As kubectl does it, an item of a typed list (`TrainJobList`) that has no kind gets that of the list. `items: null` is no item.
pub fn unpack(value: &Value) -> Option<Vec<Value>> {
    let kind = value.get("kind")?.as_str()?;
    let item_kind = kind.strip_suffix("List")?;
    let items = match value.get("items") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(Value::Null) | None if item_kind.is_empty() => &[],
        _ => return None,
    };
    let fill = |item: &Value| match (item, value.get("apiVersion")) {
        (Value::Object(map), Some(api_version))
            if !item_kind.is_empty() && !map.contains_key("kind") =>
        {
            let mut filled = Map::new();
            filled.insert("apiVersion".to_owned(), api_version.clone());
            filled.insert("kind".to_owned(), json!(item_kind));
            filled.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
            Value::Object(filled)
        }
        _ => item.clone(),
    };
    Some(items.iter().map(fill).collect())
}

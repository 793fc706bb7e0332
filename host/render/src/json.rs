//! Reading JSON by path, and edits of it that create absent parents and leave no empty list or map behind.

use serde_json::{Map, Value};
pub(crate) use trainyard_api::json::{get, get_at, get_mut};

/// Returns the items of a member; none if it is not a list.
pub(crate) fn items<'v>(of: &'v Value, member: &str) -> &'v [Value] {
    let items = get(of, member).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the text of a member; empty if it is not a text.
pub(crate) fn text<'v>(of: &'v Value, member: &str) -> &'v str {
    get(of, member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the members of a member that is an object.
pub(crate) fn object<'v>(of: &'v Value, member: &str) -> Option<&'v Map<String, Value>> {
    get(of, member).and_then(Value::as_object)
}

/// Edits the object at the path `keys`. An absent object is only created if the edit adds a member.
pub(crate) fn edit_object(
    json: &mut Value,
    keys: &[&str],
    edit: impl FnOnce(&mut Map<String, Value>),
) {
    edit_at(json, keys, |slot| match slot {
        Value::Object(object) => edit(object),
        other => {
            let mut object = Map::new();
            edit(&mut object);
            *other = if object.is_empty() {
                Value::Null
            } else {
                Value::Object(object)
            };
        }
    });
}

/// Edits the list at the path `keys`. An absent list is only created, and a list only kept, if it has an item afterwards.
pub(crate) fn edit_list(json: &mut Value, keys: &[&str], edit: impl FnOnce(&mut Vec<Value>)) {
    edit_at(json, keys, |slot| match slot {
        Value::Array(items) => {
            edit(items);
            if items.is_empty() {
                *slot = Value::Null;
            }
        }
        other => {
            let mut items = Vec::new();
            edit(&mut items);
            *other = if items.is_empty() {
                Value::Null
            } else {
                Value::Array(items)
            };
        }
    });
}

/// Edits the value at the path `keys`. Null represents an absent value, before and after the edit.
pub(crate) fn edit_at(json: &mut Value, keys: &[&str], edit: impl FnOnce(&mut Value)) {
    let Some((first, rest)) = keys.split_first() else {
        return edit(json);
    };
    let mut made = Map::new();
    let object = match json {
        Value::Object(object) => object,
        _ => &mut made,
    };
    match get_mut(object, first) {
        Some(member) => {
            edit_at(member, rest, edit);
            if member.is_null() {
                object.shift_remove(*first);
            }
        }
        None => {
            let mut member = Value::Null;
            edit_at(&mut member, rest, edit);
            if !member.is_null() {
                object.insert((*first).to_owned(), member);
            }
        }
    }
    if !made.is_empty() {
        *json = Value::Object(made);
    }
}

/// Inserts a key after `anchor`, or first if there is none, as in a hand-written manifest. An existing key keeps its position.
pub(crate) fn insert_after(
    object: &mut Map<String, Value>,
    anchor: Option<&str>,
    key: &str,
    value: Value,
) {
    let at = anchor
        .and_then(|anchor| object.keys().position(|name| name == anchor))
        .map_or(0, |at| at + 1);
    match get_mut(object, key) {
        Some(member) => *member = value,
        None => drop(object.shift_insert(at, key.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_parents_are_created_and_empty_ones_are_not() {
        let mut value = json!({"a": 1});
        edit_list(&mut value, &["b", "c"], |items| items.push(json!("x")));
        assert_eq!(value, json!({"a": 1, "b": {"c": ["x"]}}));
        edit_object(&mut value, &["d"], |_| {});
        edit_list(&mut value, &["b", "c"], Vec::clear);
        assert_eq!(value, json!({"a": 1, "b": {}}));
    }

    #[test]
    fn keys_are_inserted_after_their_anchor() {
        let mut value = json!({"name": "node", "template": {}});
        edit_object(&mut value, &[], |object| {
            insert_after(object, Some("name"), "replicas", 1.into())
        });
        assert_eq!(
            value.to_string(),
            r#"{"name":"node","replicas":1,"template":{}}"#
        );
    }
}

//! Duplicates in lists of type set and map.

use std::collections::HashMap;

use serde_json::{Map, Value};

use trainyard_text::StackPath;

use crate::{
    go,
    node::{Child, ListType, Node},
    violation::{Violation, ViolationKind},
};

/// Reports duplicate items, and duplicate keys of items, in every list of the object.
pub(crate) fn check(value: &Value, node: &Node, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    if !node.below.keyed_lists {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match node.child(key) {
                    Some(Child::Property(property)) => {
                        check(value, &property.node, &at.field(key), out);
                    }
                    Some(Child::Entry(Some(node))) => check(value, node, &at.key(key), out),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => check_set(items, at, out),
                ListType::Map(keys) => check_map(items, keys, at, out),
            }
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, node, &at.index(index), out);
                }
            }
        }
        _ => {}
    }
}

/// Returns the keys of an item with their values, which identify it in its list.
pub(crate) fn key_of(item: &Value, keys: &[String]) -> Map<String, Value> {
    keys.iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
        .collect()
}

fn check_set(items: &[Value], at: &StackPath<'_>, out: &mut Vec<Violation>) {
    for index in repeated(items.iter().map(go::identity)) {
        if let Some(item) = items.get(index) {
            out.push(duplicate(&at.index(index), go::shown(item)));
        }
    }
}

fn check_map(items: &[Value], keys: &[String], at: &StackPath<'_>, out: &mut Vec<Violation>) {
    let wrong = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null());
    if let Some((index, item)) = wrong.and_then(|index| Some((index, items.get(index)?))) {
        let detail = "must be an object for an array of list-type map";
        out.push(Violation::invalid(&at.index(index), item, detail));
        return;
    }
    let found: Vec<_> = items
        .iter()
        .map(|item| Value::Object(key_of(item, keys)))
        .collect();
    for index in repeated(found.iter().map(identity_of_key)) {
        if let Some(key) = found.get(index) {
            out.push(duplicate(&at.index(index), go::json(key)));
        }
    }
}

fn identity_of_key(key: &Value) -> String {
    let values = key.as_object().into_iter().flatten();
    values
        .map(|(name, value)| format!("{name}={}\0", go::identity(value)))
        .collect()
}

/// Returns the second index of each identity that occurs more than once.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut again = Vec::new();
    for (index, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            again.push(index);
        }
    }
    again
}

fn duplicate(at: &StackPath<'_>, shown: String) -> Violation {
    Violation::new(at, ViolationKind::Duplicate, "").showing(shown)
}

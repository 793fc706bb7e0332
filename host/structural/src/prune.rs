//! Pruning of unknown fields and of nulls, and defaulting.

use serde_json::Value;
use trainyard_text::{FieldPath, StackPath};

use crate::{
    node::{Child, Node},
    unknown::UnknownField,
};

/// The fields that every object with a kind has, whether or not its schema declares them.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes and reports the unknown fields of an object with a kind. apiVersion, kind and metadata are kept.
pub(crate) fn prune(
    value: &mut Value,
    node: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<UnknownField>,
) {
    prune_value(value, Some(node), true, node.preserve_unknown, at, out);
}

/// Removes and reports the unknown fields of a part of an object.
pub(crate) fn prune_part(
    value: &mut Value,
    node: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<UnknownField>,
) {
    prune_value(
        value,
        Some(node),
        node.embedded,
        node.preserve_unknown,
        at,
        out,
    );
}

fn prune_value(
    value: &mut Value,
    node: Option<&Node>,
    whole: bool,
    keep_unknown: bool,
    at: &StackPath<'_>,
    out: &mut Vec<UnknownField>,
) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            if whole && META_FIELDS.contains(&key.as_str()) {
                return true;
            }
            match node.and_then(|node| node.child(key)) {
                Some(child) => {
                    let node = child.node();
                    prune_value(
                        value,
                        node,
                        is_whole(node),
                        keeps(node),
                        &at.field(key),
                        out,
                    );
                    true
                }
                None if keep_unknown => true,
                None => {
                    let path = at.field(key).path();
                    let suggestion = suggest(key, node);
                    out.push(UnknownField { path, suggestion });
                    false
                }
            }
        }),
        Value::Array(items) => {
            let node = node.and_then(|node| node.items.as_deref());
            if keep_unknown && node.is_none() {
                return;
            }
            // A list that preserves unknown fields preserves those of its items as well.
            let keep = keep_unknown || keeps(node);
            for (index, item) in items.iter_mut().enumerate() {
                prune_value(item, node, is_whole(node), keep, &at.index(index), out);
            }
        }
        _ => {}
    }
}

/// Removes the fields that are null and not nullable, unless they have a default.
///
/// Nulls in lists, and in values without a schema, are kept.
pub(crate) fn prune_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            map.retain(
                |key, value| match node.child(key).and_then(|child| child.node()) {
                    Some(child) if value.is_null() => child.nullable || child.default.is_some(),
                    Some(child) => {
                        prune_nulls(value, child);
                        true
                    }
                    None => true,
                },
            );
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| prune_nulls(item, node));
            }
        }
        _ => {}
    }
}

/// Sets the defaults of fields that are missing, or null and not nullable, and reports the fields that it set.
pub(crate) fn set_defaults(
    value: &mut Value,
    node: &Node,
    at: &StackPath<'_>,
    defaulted: &mut Vec<FieldPath>,
) {
    if !node.below.defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.node.default else {
                    continue;
                };
                let absent = match map.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !property.node.nullable,
                };
                if absent {
                    map.insert(name.clone(), (**default).clone());
                    defaulted.push(at.field(name).path());
                }
            }
            for (key, value) in map.iter_mut() {
                let at = at.field(key);
                match node.child(key) {
                    Some(Child::Property(property)) => {
                        set_defaults(value, &property.node, &at, defaulted);
                    }
                    Some(Child::Entry(Some(node))) => {
                        set_entry_default(value, node, &at, defaulted);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    set_entry_default(item, node, &at.index(index), defaulted);
                }
            }
        }
        _ => {}
    }
}

fn set_entry_default(
    value: &mut Value,
    node: &Node,
    at: &StackPath<'_>,
    defaulted: &mut Vec<FieldPath>,
) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = (**default).clone();
        defaulted.push(at.path());
    }
    set_defaults(value, node, at, defaulted);
}

fn keeps(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.preserve_unknown)
}

fn is_whole(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.embedded)
}

fn suggest(key: &str, node: Option<&Node>) -> Option<String> {
    let known = node?.properties.keys().map(String::as_str);
    trainyard_text::nearest(key, known).map(str::to_owned)
}

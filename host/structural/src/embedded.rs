//! Objects in fields of other objects (`x-kubernetes-embedded-resource`), which have a kind and metadata of their own.

use serde_json::{Map, Value};

use trainyard_text::StackPath;

use crate::{
    metadata, names,
    node::{Child, Node},
    unknown::UnknownField,
    violation::Violation,
};

/// Prunes the metadata of embedded objects like the metadata of the object itself.
pub(crate) fn coerce(
    value: &mut Value,
    node: &Node,
    object_meta: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<UnknownField>,
) {
    if !node.below.embedded {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.embedded {
                metadata::coerce(map, object_meta, at, out);
            }
            for (key, value) in map {
                let child = node.child(key);
                let at = inner(at, key, child.as_ref());
                if let Some(node) = child.and_then(|child| child.node()) {
                    coerce(value, node, object_meta, &at, out);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce(item, node, object_meta, &at.index(index), out);
                }
            }
        }
        _ => {}
    }
}

/// Checks the kind and the metadata of embedded objects.
pub(crate) fn check(
    value: &Value,
    node: &Node,
    object_meta: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    if !node.below.embedded {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.embedded {
                check_one(map, object_meta, at, out);
            }
            for (key, value) in map {
                let child = node.child(key);
                let at = inner(at, key, child.as_ref());
                if let Some(node) = child.and_then(|child| child.node()) {
                    check(value, node, object_meta, &at, out);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, node, object_meta, &at.index(index), out);
                }
            }
        }
        _ => {}
    }
}

fn inner<'a>(at: &'a StackPath<'a>, key: &'a str, child: Option<&Child<'_>>) -> StackPath<'a> {
    match child {
        Some(Child::Entry(_)) => at.key(key),
        _ => at.field(key),
    }
}

fn check_one(
    object: &Map<String, Value>,
    object_meta: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    for field in ["apiVersion", "kind"] {
        let at = at.field(field);
        match object.get(field) {
            None => out.push(Violation::required(&at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                out.push(Violation::invalid(&at, &"".into(), "must not be empty"));
            }
            Some(Value::String(text)) => {
                for problem in problems(field, text) {
                    out.push(Violation::invalid(&at, &text.as_str().into(), problem));
                }
            }
            Some(other) => out.push(Violation::invalid(&at, other, "must be a string")),
        }
    }
    if let Some(metadata) = object.get("metadata") {
        metadata::check_embedded(metadata, object_meta, &at.field("metadata"), out);
    }
}

fn problems(field: &str, text: &str) -> Vec<String> {
    if field == "apiVersion" {
        return match text.matches('/').count() {
            0 | 1 => Vec::new(),
            _ => vec![format!("unexpected GroupVersion string: {text}")],
        };
    }
    let problems = names::dns_1035(&text.to_lowercase());
    match problems.is_empty() {
        true => problems,
        false => vec![format!(
            "may have mixed case, but should otherwise match: {}",
            problems.join(",")
        )],
    }
}

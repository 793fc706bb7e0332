//! Checks a patch without its template.

use std::collections::HashSet;

use serde_json::{Map, Value};
use trainyard_api::{
    FieldPath,
    merge::{Child, JOB_SET_SPEC, Node},
};

use crate::problem::Problem;

/// Reports list items with the same key, and objects with two alternatives.
pub(super) fn items(patch: &Value, at: &FieldPath) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(patch, &JOB_SET_SPEC, at, &mut problems);
    problems
}

fn walk(value: &Value, node: &'static Node, at: &FieldPath, problems: &mut Vec<Problem>) {
    let Value::Object(object) = value else {
        return;
    };
    alternatives(object, node, at, problems);
    for (field, value) in object {
        let at = at.field(field);
        match node.child(field) {
            Child::Object(node) => walk(value, node, &at, problems),
            Child::Map => {}
            Child::List(key, node) => list(value, (key, node), &at, problems),
        }
    }
}

fn list(
    value: &Value,
    (key, node): (&'static str, &'static Node),
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut seen: HashSet<&Value> = HashSet::new();
    for (position, item) in value.as_array().into_iter().flatten().enumerate() {
        let at = at.index(position);
        let Some(name) = item.get(key) else {
            problems.push(Problem::job(at.field(key), "is required"));
            continue;
        };
        if !seen.insert(name) {
            let message = format!("duplicate `{key}` {name} in this list; remove one of the items");
            problems.push(Problem::job(at.field(key), message));
        }
        walk(item, node, &at, problems);
    }
}

/// Checks that a volume, a claim or an env var has one source. As in Kubernetes, an empty string next to a source does not count.
fn alternatives(
    object: &Map<String, Value>,
    node: &Node,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut set = node.alternatives(object);
    set.retain(|field| object.get(*field).and_then(Value::as_str) != Some(""));
    if set.len() > 1 {
        // Sorted, because an API server does not keep their order.
        set.sort_unstable();
        let message = format!("has {}; set only one of them", set.join(" and "));
        problems.push(Problem::job(at.clone(), message));
    }
}

//! What is wrong with the items of a patch by themselves.

use std::collections::HashSet;

use serde_json::{Map, Value};
use trainyard_api::{
    FieldPath,
    merge::{Child, JOB_SET_SPEC, Node},
};

use crate::problem::Problem;

/// Refuses items that a merge could not tell apart, and objects that say two things at once.
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
            let message =
                format!("{name} is the `{key}` of an earlier item: one of them would be lost");
            problems.push(Problem::job(at.field(key), message));
        }
        walk(item, node, &at, problems);
    }
}

/// A volume, a claim and an env var have one source each. An empty text beside a source is none, as Kubernetes sees it.
fn alternatives(
    object: &Map<String, Value>,
    node: &Node,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut given = node.alternatives(object);
    given.retain(|field| object.get(*field).and_then(Value::as_str) != Some(""));
    if given.len() > 1 {
        // An API server does not keep the order in which they were written.
        given.sort_unstable();
        let message = format!("has {}: give one of them", given.join(" and "));
        problems.push(Problem::job(at.clone(), message));
    }
}

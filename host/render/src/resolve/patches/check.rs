//! What is wrong with the items of a patch by themselves.

use serde_json::{Map, Value};
use trainyard_api::FieldPath;

use crate::{
    merge::{Child, JOB_SET_SPEC, Node},
    problem::Problem,
};

/// Refuses items that a merge could not tell apart, and those that say two things at once.
pub(super) fn items(patch: &Value, at: &FieldPath) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(patch, &JOB_SET_SPEC, at, &mut problems);
    problems
}

fn walk(value: &Value, node: &'static Node, at: &FieldPath, problems: &mut Vec<Problem>) {
    for (field, value) in value.as_object().into_iter().flatten() {
        let at = at.field(field);
        match node.child(field) {
            Child::Object(node) => walk(value, node, &at, problems),
            Child::Map => {}
            Child::List(key, node) => list(value, (key, node), field, &at, problems),
        }
    }
}

fn list(
    value: &Value,
    (key, node): (&'static str, &'static Node),
    field: &str,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut seen: Vec<&Value> = Vec::new();
    for (position, item) in value.as_array().into_iter().flatten().enumerate() {
        let at = at.index(position);
        let Some(name) = item.get(key) else {
            problems.push(Problem::job(at.field(key), "is required"));
            continue;
        };
        if seen.contains(&name) {
            let message =
                format!("{name} is the `{key}` of an earlier item: one of them would be lost");
            problems.push(Problem::job(at.field(key), message));
        }
        seen.push(name);
        if let Some(item) = item.as_object() {
            sources(item, field, &at, problems);
        }
        walk(item, node, &at, problems);
    }
}

/// A volume, a claim and an env var have one source each.
fn sources(item: &Map<String, Value>, list: &str, at: &FieldPath, problems: &mut Vec<Problem>) {
    let says = |key: &str, value: &Value| match list {
        "volumes" | "resourceClaims" => key != "name",
        "env" => key == "valueFrom" || (key == "value" && value.as_str() != Some("")),
        _ => false,
    };
    let given: Vec<&str> = item
        .iter()
        .filter(|(key, value)| !value.is_null() && says(key, value))
        .map(|(key, _)| key.as_str())
        .collect();
    if given.len() > 1 {
        let message = format!("has {}: give one of them", given.join(" and "));
        problems.push(Problem::job(at.clone(), message));
    }
}

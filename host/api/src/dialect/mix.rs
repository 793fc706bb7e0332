//! Old fields beside new ones: where both set one field to different values, nobody can say which is meant.

use serde_json::Value;

use super::{Modernized, spec};
use crate::fields::FieldProblem;
use crate::names;
use crate::path::FieldPath;

/// Compares the converted entries with those of other managers, apart from Kueue's, which come later on purpose.
pub(super) fn check(ours: &[Value], others: &[Value], modernized: &mut Modernized) {
    let patches = spec().field("runtimePatches");
    for (at, one) in ours.iter().enumerate() {
        for (behind, other) in others.iter().enumerate() {
            if other.get("manager").and_then(Value::as_str) == Some(names::KUEUE_MANAGER) {
                continue;
            }
            let (now, there) = (patches.index(at), patches.index(ours.len() + behind));
            let member = "trainingRuntimeSpec";
            if let (Some(one), Some(other)) = (one.get(member), other.get(member)) {
                let mut found = Vec::new();
                differences(
                    one,
                    other,
                    &now.field(member),
                    &there.field(member),
                    &mut found,
                );
                for (now, there) in found {
                    let (now, there) = (modernized.written(&now), modernized.written(&there));
                    modernized.refuse(now, FieldProblem::Differs(there));
                }
            }
        }
    }
}

/// The fields that both set, to different values. Items of lists are compared by name; lists without names are one value.
fn differences(
    one: &Value,
    other: &Value,
    at_one: &FieldPath,
    at_other: &FieldPath,
    found: &mut Vec<(FieldPath, FieldPath)>,
) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                if let Some(there) = other.get(key) {
                    differences(
                        value,
                        there,
                        &at_one.field(key),
                        &at_other.field(key),
                        found,
                    );
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if named(one) && named(other) => {
            for (at, item) in one.iter().enumerate() {
                let same = other
                    .iter()
                    .position(|there| there.get("name") == item.get("name"));
                if let Some((behind, there)) = same.and_then(|at| Some((at, other.get(at)?))) {
                    differences(
                        item,
                        there,
                        &at_one.index(at),
                        &at_other.index(behind),
                        found,
                    );
                }
            }
        }
        _ if one != other => found.push((at_one.clone(), at_other.clone())),
        _ => {}
    }
}

fn named(list: &[Value]) -> bool {
    list.iter()
        .all(|item| item.get("name").is_some_and(Value::is_string))
}

//! Old fields beside new ones: where both set one field to different values, nobody can say which is meant.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Modernized, spec};
use crate::fields::FieldProblem;
use crate::names;
use crate::path::{FieldPath, Segment};

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

/// The fields that both set, to different values. Items of lists are compared by their keys, as they are merged; lists
/// without keys are one value.
fn differences(
    one: &Value,
    other: &Value,
    at_one: &FieldPath,
    at_other: &FieldPath,
    found: &mut Vec<(FieldPath, FieldPath)>,
) {
    let list = match at_one.segments().last() {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    let key = key_of(list);
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                if let Some(there) = other.get(name) {
                    let (at_one, at_other) = (at_one.field(name), at_other.field(name));
                    differences(value, there, &at_one, &at_other, found);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if keyed(one, key) && keyed(other, key) => {
            for (at, item) in one.iter().enumerate() {
                let same = |there: &&Value| there.get(key) == item.get(key);
                let there = other.iter().enumerate().find(|(_, there)| same(there));
                if let Some((behind, there)) = there {
                    let (at_one, at_other) = (at_one.index(at), at_other.index(behind));
                    if ALTERNATIVES.contains(&list) && nothing_shared(item, there) {
                        found.push((at_one, at_other));
                    } else {
                        differences(item, there, &at_one, &at_other, found);
                    }
                }
            }
        }
        _ if one != other => found.push((at_one.clone(), at_other.clone())),
        _ => {}
    }
}

/// The field that tells the items of a list apart when it is merged.
fn key_of(list: &str) -> &'static str {
    match list {
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        _ => "name",
    }
}

fn keyed(list: &[Value], key: &str) -> bool {
    list.iter()
        .all(|item| item.get(key).is_some_and(Value::is_string))
}

/// The lists whose items hold one of several fields beside their name: of two of them one would be lost.
const ALTERNATIVES: [&str; 3] = ["env", "resourceClaims", "volumes"];

/// Whether both items say something beside their name, but in no common field.
fn nothing_shared(one: &Value, other: &Value) -> bool {
    let fields = |item: &Value| -> BTreeSet<String> {
        let fields = item.as_object().into_iter().flatten();
        let named = fields.filter(|(field, value)| *field != "name" && !value.is_null());
        named.map(|(field, _)| field.clone()).collect()
    };
    let (one, other) = (fields(one), fields(other));
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}

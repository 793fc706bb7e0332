//! Differences between two objects.

use serde_json::{Map, Value};

use super::{
    names::text,
    positions::Positions,
    table::{Child, JOB_SET_SPEC, Node, PLAIN},
};
use crate::{FieldPath, StackPath};

/// A difference between two objects: the smallest value that is not an object, or a whole item that one of them does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The path, by names.
    pub path: FieldPath,
    /// The value before, if any.
    pub from: Option<Value>,
    /// The value after, if any.
    pub to: Option<Value>,
}

/// Returns the differences of a JobSet's spec `after` from `before`, in the order of `after`.
#[must_use]
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    differences_in(before, after, &JOB_SET_SPEC)
}

/// Returns the differences of an object with this structure, in the order of `after`. The order of fields and of items is not compared.
#[must_use]
pub fn differences_in(before: &Value, after: &Value, node: &'static Node) -> Vec<Difference> {
    let mut out = Vec::new();
    compare(Some(before), Some(after), node, &StackPath::ROOT, &mut out);
    out
}

fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    node: &'static Node,
    path: &StackPath<'_>,
    out: &mut Vec<Difference>,
) {
    let empty = Map::new();
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => fields(old, new, node, path, out),
        (None, Some(Value::Object(new))) if !new.is_empty() => fields(&empty, new, node, path, out),
        _ if before != after => out.push(Difference {
            path: path.path(),
            from: before.cloned(),
            to: after.cloned(),
        }),
        _ => {}
    }
}

fn fields(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    node: &'static Node,
    path: &StackPath<'_>,
    out: &mut Vec<Difference>,
) {
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    for name in new.keys().chain(removed) {
        let path = path.field(name);
        match (node.child(name), old.get(name), new.get(name)) {
            (Child::Object(node), old, new) => compare(old, new, node, &path, out),
            (Child::Map, old, new) => map(old, new, &path, out),
            (Child::List(key, node), old, Some(Value::Array(new))) => {
                let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                items(old, new, (key, node), &path, out);
            }
            (Child::List(..), old, new) => compare(old, new, &PLAIN, &path, out),
        }
    }
}

fn map(old: Option<&Value>, new: Option<&Value>, path: &StackPath<'_>, out: &mut Vec<Difference>) {
    let empty = Map::new();
    let [old, new] = [old, new].map(|value| value.and_then(Value::as_object).unwrap_or(&empty));
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    for key in new.keys().chain(removed) {
        let (from, to) = (old.get(key), new.get(key));
        if from != to {
            out.push(Difference {
                path: path.key(key).path(),
                from: from.cloned(),
                to: to.cloned(),
            });
        }
    }
}

fn items(
    old: &[Value],
    new: &[Value],
    (key, node): (&'static str, &'static Node),
    path: &StackPath<'_>,
    out: &mut Vec<Difference>,
) {
    let [in_old, in_new] = [old, new].map(|items| Positions::of(items, key));
    let name = |item: &Value| item.get(key).map(text).unwrap_or_default();
    for item in new {
        let name = name(item);
        let path = path.key(&name);
        match in_old.get(item.get(key)).and_then(|at| old.get(at)) {
            Some(before) => compare(Some(before), Some(item), node, &path, out),
            None => out.push(Difference {
                path: path.path(),
                from: None,
                to: Some(item.clone()),
            }),
        }
    }
    for item in old {
        if in_new.get(item.get(key)).is_none() {
            out.push(Difference {
                path: path.key(&name(item)).path(),
                from: Some(item.clone()),
                to: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_by_the_smallest_part() {
        let pod = |metadata: Value, spec: Value| json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"metadata": metadata, "spec": spec}}}}]});
        let before = pod(
            json!({"labels": {"a/b": "1", "c": "2"}}),
            json!({"securityContext": {"runAsUser": 1}, "schedulingGates": [{"name": "x"}], "tolerations": [1]}),
        );
        let after = pod(
            json!({"labels": {"a/b": "2", "c": "2"}}),
            json!({
                "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}},
                "schedulingGates": [{"name": "x"}, {"name": "y"}],
                "affinity": {},
            }),
        );
        let found: Vec<_> = differences(&before, &after)
            .into_iter()
            .map(|d| (d.path.to_string(), d.from, d.to))
            .collect();
        let root = "replicatedJobs[node].template.spec.template";
        let expected = [
            (".metadata.labels[a/b]", json!("1"), json!("2")),
            (
                ".spec.securityContext.seccompProfile.type",
                Value::Null,
                json!("RuntimeDefault"),
            ),
            (
                ".spec.schedulingGates[y]",
                Value::Null,
                json!({"name": "y"}),
            ),
            (".spec.affinity", Value::Null, json!({})),
            (".spec.tolerations", json!([1]), Value::Null),
        ]
        .map(|(path, from, to)| {
            let given = |value: Value| (!value.is_null()).then_some(value);
            (format!("{root}{path}"), given(from), given(to))
        });
        assert_eq!(found, expected);
        assert!(differences(&after, &after).is_empty());
    }
}

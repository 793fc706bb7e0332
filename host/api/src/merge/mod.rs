//! Kubernetes' strategic merge of a patch into a JobSet's spec, corrections of its result, and the differences of two specs.
//!
//! [`strategic`] returns the same values in the same order as `strategicpatch.StrategicMergePatch` of k8s.io/apimachinery does for a
//! `JobSetSpec`. Patches of a TrainJob are typed: they have no directives (`$patch`), and nulls and empty lists in them have no effect.
//! [`fix`] then corrects results that users do not intend. Merge keys and unions of Kubernetes' API are in one table ([`JOB_SET`]).

mod conflicts;
mod diff;
mod error;
mod fixes;
mod keyed;
mod names;
mod positions;
mod table;

use serde_json::{Map, Value};

pub(crate) use self::conflicts::conflicts;
pub use self::{
    diff::{Difference, differences, differences_in},
    error::{MergeError, Side},
    fixes::{fix, keep_the_base_order},
    names::{Names, by_names, by_positions},
    table::{Child, JOB_SET, JOB_SET_SPEC, JOB_TEMPLATE, Node, PLAIN},
};
use crate::StackPath;

/// Merges a patch into the spec of a JobSet.
///
/// Objects are merged by key. Lists with a merge key are merged by item: items of the patch keep the patch's order, and other items
/// of the base are inserted between them if their order in the base allows it. All other lists are replaced.
///
/// # Errors
/// An item of a keyed list that is not an object or has no key.
pub fn strategic(base: &Value, patch: &Value) -> Result<Value, MergeError> {
    let mut patch = patch.clone();
    drop_empty(&mut patch);
    merge(base, &patch, &JOB_SET_SPEC, &StackPath::ROOT)
}

fn merge(
    base: &Value,
    patch: &Value,
    node: &'static Node,
    path: &StackPath<'_>,
) -> Result<Value, MergeError> {
    let (Value::Object(base), Value::Object(patch)) = (base, patch) else {
        return Ok(patch.clone());
    };
    let mut out = Map::with_capacity(base.len());
    for (field, old) in base {
        let merged = match patch.get(field) {
            Some(change) => merge_field(old, change, node.child(field), &path.field(field))?,
            None => old.clone(),
        };
        out.insert(field.clone(), merged);
    }
    for (field, change) in patch.iter().filter(|(field, _)| !base.contains_key(*field)) {
        out.insert(field.clone(), change.clone());
    }
    Ok(Value::Object(out))
}

fn merge_field(
    old: &Value,
    change: &Value,
    child: Child,
    path: &StackPath<'_>,
) -> Result<Value, MergeError> {
    match (child, old, change) {
        (Child::Object(node), ..) => merge(old, change, node, path),
        (Child::Map, ..) => merge(old, change, &table::PLAIN, path),
        (Child::List(key, node), Value::Array(old), Value::Array(new)) => {
            keyed::merge_list(old, new, key, node, path)
        }
        (Child::List(..), ..) => Ok(change.clone()),
    }
}

/// Removes nulls and empty lists at any depth, which a typed patch cannot have.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, value| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn pod(spec: Value) -> Value {
        json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]})
    }

    fn merged(base: Value, patch: Value) -> Value {
        let merged = strategic(&pod(base), &pod(patch)).unwrap();
        merged
            .pointer("/replicatedJobs/0/template/spec/template/spec")
            .unwrap()
            .clone()
    }

    #[test]
    fn order_of_the_patch_comes_before_order_of_the_base() {
        let list = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect();
        let order = |base: &[&str], patch: &[&str]| -> Value {
            let (base, patch): (Vec<_>, Vec<_>) = (list(base), list(patch));
            merged(
                json!({"initContainers": base}),
                json!({"initContainers": patch}),
            )["initContainers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["name"].clone())
                .collect()
        };
        assert_eq!(order(&["a", "b", "c"], &["c", "a"]), json!(["b", "c", "a"]));
        assert_eq!(order(&["a", "b"], &["x", "b"]), json!(["x", "a", "b"]));
        assert_eq!(order(&["a", "b"], &["x"]), json!(["x", "a", "b"]));
    }

    #[test]
    fn maps_merge_keyed_lists_merge_other_lists_are_replaced() {
        let base = json!({
            "nodeSelector": {"zone": "a", "pool": "cpu"},
            "tolerations": [{"key": "a"}, {"key": "b"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        });
        let patch = json!({
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "c"}],
            "volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
        });
        let expected = json!({
            "nodeSelector": {"zone": "a", "pool": "gpu"},
            "tolerations": [{"key": "c"}],
            "volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
        });
        assert_eq!(merged(base, patch), expected);
    }

    /// Each item is looked for a few times, in four lists; a search through them would compare half a million keys for 1,000
    /// items, and eight million for 4,000.
    #[test]
    fn comparisons_of_keys_follow_the_number_of_items() {
        let container = |prefix: &str, items: usize| {
            let list = |key: &str| -> Vec<Value> {
                let name = |at| format!("{prefix}-{at}");
                (0..items)
                    .map(|at| json!({key: name(at), "value": at}))
                    .collect()
            };
            let (env, mounts) = (list("name"), list("mountPath"));
            pod(json!({"containers": [{"name": "node", "env": env, "volumeMounts": mounts}]}))
        };
        let comparisons = |items: usize, prefix: &str| {
            let (base, patch) = (container("a", items), container(prefix, items));
            positions::comparisons::during(|| {
                let merged = fix(&base, &patch, strategic(&base, &patch).unwrap());
                let found = differences(&base, &merged).len();
                assert_eq!(found, if prefix == "a" { 0 } else { 2 * items });
                let [one, other] = [&base, &patch].map(|spec| json!({"template": {"spec": spec}}));
                assert!(conflicts(&one, &other, items).is_empty());
            })
        };
        for prefix in ["a", "b"] {
            for items in [1_000, 4_000] {
                let found = comparisons(items, prefix);
                assert!(found < 40 * items as u64, "{prefix}, {items}: {found}");
            }
        }
    }

    #[test]
    fn nulls_and_empty_lists_say_nothing() {
        let base = json!({"tolerations": [{"key": "a"}], "serviceAccountName": "x"});
        let patch =
            json!({"tolerations": [], "serviceAccountName": null, "volumes": [], "affinity": {}});
        let expected =
            json!({"tolerations": [{"key": "a"}], "serviceAccountName": "x", "affinity": {}});
        assert_eq!(merged(base, patch), expected);
    }

    #[test]
    fn an_item_without_its_key_is_named_with_its_side() {
        let base = pod(json!({"containers": [{"name": "node"}]}));
        let patch = pod(json!({"containers": [{"image": "x"}]}));
        let path = "replicatedJobs[0].template.spec.template.spec.containers[0]";
        let error = strategic(&base, &patch).unwrap_err();
        assert_eq!(
            (error.side, error.path.to_string(), error.key),
            (Side::Patch, path.to_owned(), "name")
        );
        assert_eq!(strategic(&patch, &base).unwrap_err().side, Side::Base);
    }
}

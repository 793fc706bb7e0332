//! The deliberate fixes: where Kubernetes' strategic merge gives what nobody means, each fix a function of its own.

use serde_json::{Map, Value};

use super::table::{Child, JOB_SET_SPEC, Node};

/// Mends the result of a merge of `patch` into `base`. A function of its own, and not part of the merge, so that the merge
/// can be compared with Kubernetes'.
#[must_use]
pub fn fix(base: &Value, patch: &Value, merged: Value) -> Value {
    let merged = one_source_per_volume(patch, merged);
    let merged = one_source_per_claim(patch, merged);
    let merged = one_source_per_env_var(patch, merged);
    keep_the_base_order(base, merged)
}

/// W68: the items of every keyed list stand as the runtime's author ordered them, additions last in the patch's order. The
/// merge puts the patch's items first, which changes the order in which init containers run.
#[must_use]
pub fn keep_the_base_order(base: &Value, mut merged: Value) -> Value {
    order(base, &mut merged, &JOB_SET_SPEC);
    merged
}

fn order(base: &Value, merged: &mut Value, node: &'static Node) {
    let (Value::Object(base), Value::Object(merged)) = (base, merged) else {
        return;
    };
    for (field, merged) in merged {
        let Some(base) = base.get(field) else {
            continue;
        };
        match (node.child(field), base, merged) {
            (Child::Object(node), base, merged) => order(base, merged, node),
            (Child::List(key, node), Value::Array(base), Value::Array(merged)) => {
                let place =
                    |item: &Value| base.iter().position(|old| old.get(key) == item.get(key));
                merged.sort_by_key(|item| place(item).unwrap_or(base.len()));
                for item in merged {
                    if let Some(old) = place(item).and_then(|at| base.get(at)) {
                        order(old, item, node);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A volume has one source: a patch that gives another one replaces the runtime's. The merge keeps both (semantics 3 of
/// the reference), and no API server takes such a pod.
#[must_use]
pub fn one_source_per_volume(patch: &Value, mut merged: Value) -> Value {
    each_pod_spec(patch, &mut merged, |patch, merged| {
        each_item(patch, merged, "volumes", |patch, merged| {
            one_source(patch, merged, &|key| key != "name");
        });
    });
    merged
}

/// A resource claim of a pod is a claim or a template of one: a patch that gives the other replaces the runtime's.
#[must_use]
pub fn one_source_per_claim(patch: &Value, mut merged: Value) -> Value {
    each_pod_spec(patch, &mut merged, |patch, merged| {
        each_item(patch, merged, "resourceClaims", |patch, merged| {
            one_source(patch, merged, &|key| key != "name");
        });
    });
    merged
}

/// An env var has a value or one source of it: a patch that gives another replaces the runtime's. The merge keeps both
/// (semantics 3 of the reference).
#[must_use]
pub fn one_source_per_env_var(patch: &Value, mut merged: Value) -> Value {
    each_pod_spec(patch, &mut merged, |patch, merged| {
        for list in ["initContainers", "containers"] {
            each_item(patch, merged, list, |patch, merged| {
                each_item(patch, merged, "env", |patch, merged| {
                    one_source(patch, merged, &|key| matches!(key, "value" | "valueFrom"));
                    let from = patch.get("valueFrom").and_then(Value::as_object);
                    let merged = merged.get_mut("valueFrom").and_then(Value::as_object_mut);
                    if let (Some(patch), Some(merged)) = (from, merged) {
                        one_source(patch, merged, &|_| true);
                    }
                });
            });
        }
    });
    merged
}

/// Where the patch has a source, drops every other one.
fn one_source(
    patch: &Map<String, Value>,
    merged: &mut Map<String, Value>,
    is_source: &dyn Fn(&str) -> bool,
) {
    let given = |key: &str| is_source(key) && patch.get(key).is_some_and(|value| !value.is_null());
    if patch.keys().any(|key| given(key)) {
        merged.retain(|key, _| !is_source(key) || given(key));
    }
}

/// The pod spec below a Job template.
const POD_SPEC: &str = "/spec/template/spec";

/// Calls with each pod spec of the patch and the merged one of the same replicated job.
fn each_pod_spec(
    patch: &Value,
    merged: &mut Value,
    mut edit: impl FnMut(&Map<String, Value>, &mut Map<String, Value>),
) {
    let (Value::Object(patch), Value::Object(merged)) = (patch, merged) else {
        return;
    };
    each_item(patch, merged, "replicatedJobs", |patch, merged| {
        let patch = pod_spec(patch);
        let merged = merged
            .get_mut("template")
            .and_then(|job| job.pointer_mut(POD_SPEC))
            .and_then(Value::as_object_mut);
        if let (Some(patch), Some(merged)) = (patch, merged) {
            edit(patch, merged);
        }
    });
}

fn pod_spec(job: &Map<String, Value>) -> Option<&Map<String, Value>> {
    job.get("template")?.pointer(POD_SPEC)?.as_object()
}

/// Calls with each item of the patch's list and the merged one of the same name.
fn each_item(
    patch: &Map<String, Value>,
    merged: &mut Map<String, Value>,
    list: &str,
    mut edit: impl FnMut(&Map<String, Value>, &mut Map<String, Value>),
) {
    let (Some(Value::Array(patch)), Some(Value::Array(merged))) =
        (patch.get(list), merged.get_mut(list))
    else {
        return;
    };
    for patch in patch.iter().filter_map(Value::as_object) {
        let same = |item: &&mut Map<String, Value>| item.get("name") == patch.get("name");
        let mut merged = merged.iter_mut().filter_map(Value::as_object_mut);
        if let Some(merged) = merged.find(same) {
            edit(patch, merged);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the fix of one list of a pod spec, or of its container `node`, makes of a merged item.
    fn fixed(
        fix: fn(&Value, Value) -> Value,
        list: &str,
        mut patch: Value,
        mut merged: Value,
    ) -> Value {
        for item in [&mut patch, &mut merged] {
            if let Value::Object(item) = item {
                item.insert("name".to_owned(), json!("x"));
            }
        }
        let pod = |item: &Value| {
            let spec = json!({list: [item], "containers": [{"name": "node", list: [item]}]});
            json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]})
        };
        let before = pod(&merged);
        let after = fix(&pod(&patch), before.clone());
        let at = |value: &Value, path: &str| {
            let pod = "/replicatedJobs/0/template/spec/template/spec";
            value.pointer(&format!("{pod}{path}/{list}/0")).cloned()
        };
        let changed = ["", "/containers/0"]
            .into_iter()
            .find(|path| at(&after, path) != at(&before, path));
        let mut item = at(&after, changed.unwrap_or_default()).unwrap_or_default();
        if let Value::Object(item) = &mut item {
            item.remove("name");
        }
        item
    }

    #[test]
    fn a_source_replaces_every_other() {
        let (a, b) = (json!({"fieldRef": {}}), json!({"secretKeyRef": {}}));
        let both = json!({"fieldRef": {}, "secretKeyRef": {}});
        for (patch, merged, expected) in [
            (
                json!({"value": "x"}),
                json!({"value": "x", "valueFrom": a}),
                json!({"value": "x"}),
            ),
            (
                json!({"value": ""}),
                json!({"value": "", "valueFrom": a}),
                json!({"value": ""}),
            ),
            (
                json!({"valueFrom": b}),
                json!({"value": "x", "valueFrom": b}),
                json!({"valueFrom": b}),
            ),
            (
                json!({"valueFrom": b}),
                json!({"valueFrom": both}),
                json!({"valueFrom": b}),
            ),
        ] {
            assert_eq!(
                fixed(one_source_per_env_var, "env", patch, merged),
                expected
            );
        }
        let (claim, template) = ("resourceClaimName", "resourceClaimTemplateName");
        let both = json!({claim: "a", template: "b"});
        let claimed = fixed(
            one_source_per_claim,
            "resourceClaims",
            json!({claim: "a"}),
            both,
        );
        assert_eq!(claimed, json!({claim: "a"}));
        let both = json!({"emptyDir": {}, "configMap": {"name": "a", "defaultMode": 1}});
        let patch = json!({"configMap": {"name": "a"}});
        let volume = fixed(one_source_per_volume, "volumes", patch, both);
        assert_eq!(
            volume,
            json!({"configMap": {"name": "a", "defaultMode": 1}})
        );
    }

    #[test]
    fn a_patch_without_a_source_keeps_what_there_is() {
        let held = json!({"valueFrom": {"fieldRef": {}}});
        for patch in [json!({}), json!({"value": null})] {
            let kept = fixed(one_source_per_env_var, "env", patch, held.clone());
            assert_eq!(kept, held);
        }
    }
}

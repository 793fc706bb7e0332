//! Corrections of results of Kubernetes' strategic merge that users do not intend, one function for each.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    positions::Positions,
    table::{Child, JOB_SET_SPEC, Node},
};

/// Corrects the result of a merge of `patch` into `base`. This is not part of the merge, so that the merge can be compared with
/// Kubernetes'.
#[must_use]
pub fn fix(base: &Value, patch: &Value, mut merged: Value) -> Value {
    one_alternative(patch, &mut merged, &JOB_SET_SPEC);
    keep_the_base_order(base, merged)
}

/// Restores the runtime's order of the items of keyed lists, with additions last in the patch's order (W68). The merge puts the
/// patch's items first, which changes the order in which init containers run.
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
                let places = Positions::of(base, key);
                let place = |item: &Value| places.get(item.get(key));
                merged.sort_by_cached_key(|item| place(item).unwrap_or(base.len()));
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

/// Removes the runtime's source of a volume, resource claim or env var if the patch sets another one. The merge keeps both, and an API
/// server refuses such a pod.
fn one_alternative(patch: &Value, merged: &mut Value, node: &'static Node) {
    let (Value::Object(patch), Value::Object(merged)) = (patch, merged) else {
        return;
    };
    let given: HashSet<&str> = node.alternatives(patch).into_iter().collect();
    if !given.is_empty() {
        merged.retain(|field, _| !node.is_alternative(field) || given.contains(field.as_str()));
    }
    for (field, patch) in patch {
        let Some(merged) = merged.get_mut(field) else {
            continue;
        };
        match (node.child(field), patch, merged) {
            (Child::Object(node), patch, merged) => one_alternative(patch, merged, node),
            (Child::List(key, node), Value::Array(patch), Value::Array(merged)) => {
                let places = Positions::of(merged, key);
                let places: Vec<_> = patch.iter().map(|item| places.get(item.get(key))).collect();
                for (patch, place) in patch.iter().zip(places) {
                    if let Some(merged) = place.and_then(|at| merged.get_mut(at)) {
                        one_alternative(patch, merged, node);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The corrected item of a list of a pod spec, or of its container `node`.
    fn fixed(list: &str, mut patch: Value, mut merged: Value) -> Value {
        for item in [&mut patch, &mut merged] {
            if let Value::Object(item) = item {
                item.insert("name".to_owned(), json!("x"));
            }
        }
        let below = if list == "env" { "/containers/0" } else { "" };
        let pod = |item: &Value| {
            let spec = match below {
                "" => json!({list: [item]}),
                _ => json!({"containers": [{"name": "node", list: [item]}]}),
            };
            json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]})
        };
        let merged = pod(&merged);
        let after = fix(&merged, &pod(&patch), merged.clone());
        let pod = "/replicatedJobs/0/template/spec/template/spec";
        let mut item = after
            .pointer(&format!("{pod}{below}/{list}/0"))
            .cloned()
            .unwrap_or_default();
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
            assert_eq!(fixed("env", patch, merged), expected);
        }
        let (claim, template) = ("resourceClaimName", "resourceClaimTemplateName");
        let both = json!({claim: "a", template: "b"});
        let claimed = fixed("resourceClaims", json!({claim: "a"}), both);
        assert_eq!(claimed, json!({claim: "a"}));
        let both = json!({"emptyDir": {}, "configMap": {"name": "a", "defaultMode": 1}});
        let patch = json!({"configMap": {"name": "a"}});
        let volume = fixed("volumes", patch, both);
        assert_eq!(
            volume,
            json!({"configMap": {"name": "a", "defaultMode": 1}})
        );
    }

    #[test]
    fn a_patch_without_a_source_keeps_what_there_is() {
        let held = json!({"valueFrom": {"fieldRef": {}}});
        for patch in [json!({}), json!({"value": null})] {
            let kept = fixed("env", patch, held.clone());
            assert_eq!(kept, held);
        }
    }
}

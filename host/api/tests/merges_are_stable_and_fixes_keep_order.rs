//! Properties that hold for every merge and for the fixes after it.

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_api::merge::{fix, keep_the_base_order, strategic};

use crate::merge_inputs::{self, Input, base, input};

/// The lists of a pod spec that have a merge key, and those of a container.
const POD_LISTS: [(&str, &str); 6] = [
    ("volumes", "name"),
    ("initContainers", "name"),
    ("containers", "name"),
    ("imagePullSecrets", "name"),
    ("schedulingGates", "name"),
    ("resourceClaims", "name"),
];
const CONTAINER_LISTS: [(&str, &str); 2] = [("env", "name"), ("volumeMounts", "mountPath")];

fn items<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn named<'v>(value: &'v Value, list: &str, name: &Value) -> Option<&'v Value> {
    items(value, list).find(|item| item.get("name") == Some(name))
}

fn pod(job: &Value) -> &Value {
    job.pointer("/template/spec/template/spec")
        .unwrap_or(&Value::Null)
}

/// Lists with their keys.
type Lists = &'static [(&'static str, &'static str)];

/// The objects with keyed lists that both specs have: the spec itself, pod specs and containers.
fn pairs<'v>(one: &'v Value, other: &'v Value) -> Vec<(&'v Value, &'v Value, Lists)> {
    let mut found: Vec<(_, _, Lists)> = vec![(one, other, &[("replicatedJobs", "name")])];
    for job in items(one, "replicatedJobs") {
        let Some(same) = named(other, "replicatedJobs", &job["name"]) else {
            continue;
        };
        let (here, there) = (pod(job), pod(same));
        found.push((here, there, &POD_LISTS));
        for list in ["initContainers", "containers"] {
            for container in items(here, list) {
                if let Some(same) = named(there, list, &container["name"]) {
                    found.push((container, same, &CONTAINER_LISTS));
                }
            }
        }
    }
    found
}

/// Whether each keyed list of `after` begins with the items of `before`, in their order.
fn begins_with(before: &Value, after: &Value) -> Result<(), TestCaseError> {
    for (old, new, lists) in pairs(before, after) {
        for (list, key) in lists {
            let keys = |value: &Value| {
                items(value, list)
                    .map(|item| item[key].clone())
                    .collect::<Vec<_>>()
            };
            let (old, new) = (keys(old), keys(new));
            prop_assert!(new.starts_with(&old), "{list}: {old:?} became {new:?}");
        }
    }
    Ok(())
}

/// Whether each item of `merged` that the patch names has the patch's source and no other.
fn has_the_patch_s_sources(patch: &Value, merged: &Value) -> Result<(), TestCaseError> {
    let is_source = |list: &str, key: &str| match list {
        "volumes" | "resourceClaims" => key != "name",
        "env" => key != "name",
        _ => false,
    };
    for (given, has, lists) in pairs(patch, merged) {
        for (list, _) in lists {
            for item in items(given, list) {
                let sources = |item: &Value| -> Vec<String> {
                    let keys = item.as_object().unwrap().iter();
                    let keys = keys.filter(|(key, value)| is_source(list, key) && !value.is_null());
                    keys.map(|(key, _)| key.clone()).collect()
                };
                let wanted = sources(item);
                if *list != "volumeMounts" && !wanted.is_empty() {
                    let has = named(has, list, &item["name"]).unwrap();
                    prop_assert_eq!(sources(has), wanted, "{}", list);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn empty_patch_changes_nothing(base in base()) {
        for nothing in [json!({}), json!({"replicatedJobs": []}), json!({"replicatedJobs": null})] {
            let merged = strategic(&base, &nothing).unwrap();
            prop_assert_eq!(&merged, &base);
            prop_assert_eq!(fix(&base, &nothing, merged).to_string(), base.to_string());
        }
    }

    #[test]
    fn merging_twice_changes_nothing_more(Input { base, patch, .. } in input()) {
        let once = strategic(&base, &patch).unwrap();
        prop_assert_eq!(strategic(&once, &patch).unwrap(), once);
        let fixed = fix(&base, &patch, strategic(&base, &patch).unwrap());
        let again = fix(&fixed, &patch, strategic(&fixed, &patch).unwrap());
        prop_assert_eq!(again, fixed);
    }

    #[test]
    fn fixed_lists_start_with_the_runtimes_items(Input { base, patch, .. } in input()) {
        let fixed = fix(&base, &patch, strategic(&base, &patch).unwrap());
        begins_with(&base, &fixed)?;
    }

    #[test]
    fn fixes_change_only_the_order(Input { base, patch, .. } in input()) {
        let merged = strategic(&base, &patch).unwrap();
        let mut texts = [merged.clone(), keep_the_base_order(&base, merged)].map(|value| {
            let mut bytes = value.to_string().into_bytes();
            bytes.sort_unstable();
            bytes
        });
        let [one, other] = &mut texts;
        prop_assert_eq!(one, other);
    }

    #[test]
    fn fixed_volumes_have_one_source(Input { base, patch, .. } in input()) {
        let fixed = fix(&base, &patch, strategic(&base, &patch).unwrap());
        has_the_patch_s_sources(&patch, &fixed)?;
    }
}

/// Without the fixes, the properties hold for few inputs, so the checks above can fail.
#[test]
fn unfixed_merge_has_none_of_these_properties() {
    let (mut order, mut sources) = (0, 0);
    for Input { base, patch, .. } in merge_inputs::inputs(300, 7) {
        let merged = strategic(&base, &patch).unwrap();
        order += usize::from(begins_with(&base, &merged).is_err());
        sources += usize::from(has_the_patch_s_sources(&patch, &merged).is_err());
    }
    assert!(
        order > 30 && sources > 10,
        "{order} reordered, {sources} with two sources"
    );
}

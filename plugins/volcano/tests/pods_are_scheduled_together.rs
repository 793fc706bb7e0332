//! The PodGroup counts the pods that start together, which have its annotation, and has their queue, priority and topology.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::json;
use trainyard_plugin_volcano::PLUGIN;

use crate::common::{class, job, spec};

const QUEUE: &str = "scheduling.volcano.sh/queue-name";

#[test]
fn group_counts_nodes_and_their_limits() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    let resources = json!({"nvidia.com/gpu": "32"});
    assert_eq!(
        spec(&outcome),
        json!({"minMember": 4, "minResources": resources})
    );
}

#[test]
fn only_members_have_the_annotation() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    let annotation = |set: &str| {
        let path = format!("pod-sets[{set}].pod-annotations[scheduling.k8s.io/group-name]");
        outcome.value(&path)
    };
    assert_eq!(annotation("node"), Some(json!("bert")));
    assert_eq!(annotation("dataset-initializer"), None);
}

#[test]
fn queue_is_that_of_the_job_set() {
    let job = job().job_set_annotation(QUEUE, "research");
    let outcome = job.all_phases(&PLUGIN).unwrap();
    assert_eq!(spec(&outcome)["queue"], "research");
}

#[test]
fn topology_has_defaults_only_if_it_is_set() {
    let of = |config| {
        let outcome = job().config(config).all_phases(&PLUGIN).unwrap();
        spec(&outcome)["networkTopology"].clone()
    };
    assert_eq!(of(json!({})), json!(null));
    assert_eq!(
        of(json!({"networkTopology": {}})),
        json!({"mode": "hard", "highestTierAllowed": 1})
    );
    let soft = json!({"mode": "soft", "highestTierAllowed": 3});
    assert_eq!(of(json!({"networkTopology": soft})), soft);
}

#[test]
fn priority_is_that_of_the_members() {
    let with = |name: &'static str| {
        job().object(class(name)).pod_set("observer", move |set| {
            set.priority_class(name).container("observer", |c| c)
        })
    };
    let outcome = with("high").all_phases(&PLUGIN).unwrap();
    assert_eq!(spec(&outcome)["priorityClassName"], "high");
    assert_eq!(outcome.warnings(), [""; 0]);
    let outcome = with("high")
        .pod_set("second", |set| {
            set.priority_class("system-node-critical")
                .container("second", |c| c)
        })
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(spec(&outcome)["priorityClassName"], "system-node-critical");
    let [warning] = &*outcome.warnings() else {
        unreachable!("{:?}", outcome.warnings())
    };
    assert!(
        warning.contains(
            "`high` in replicated job `observer`, and `system-node-critical` in `second`"
        ),
        "{warning}"
    );
}

#[test]
fn scheduler_of_the_operator_is_set_on_members() {
    let asked = job().operator_config(json!({"schedulerName": "volcano"}));
    let outcome = asked.all_phases(&PLUGIN).unwrap();
    let scheduler = |set: &str| outcome.value(&format!("pod-sets[{set}].scheduler-name"));
    assert_eq!(scheduler("node"), Some(json!("volcano")));
    assert_eq!(scheduler("dataset-initializer"), None);
}

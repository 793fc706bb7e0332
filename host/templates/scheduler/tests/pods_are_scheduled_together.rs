//! The pods that start together have the group's label, and the group has their number.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::json;
use trainyard_sdk::mock::MockJob;
use trainyard_template_scheduler::PLUGIN;

#[test]
fn pods_belong_to_a_group() {
    let outcome = MockJob::new("bert")
        .all_granted()
        .nodes(4)
        .config(json!({"queue": "research"}))
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .count(4)
                .container("node", |node| node.request("cpu", "2"))
        })
        .all_phases(&PLUGIN)
        .unwrap();
    let label = "pod-sets[node].pod-labels[scheduling.example.com/group]";
    assert_eq!(outcome.value(label), Some(json!("bert")));
    assert_eq!(
        outcome.value("pod-sets[node].scheduler-name"),
        Some(json!("batch-scheduler"))
    );
    let expected = json!({"minMembers": 4, "resources": {"cpu": "8"}, "queue": "research"});
    assert_eq!(outcome.objects()[0].value("/spec"), Some(&expected));
}

#[test]
fn nodes_may_wait_for_other_pods() {
    let outcome = MockJob::new("bert")
        .all_granted()
        .pod_set("helper", |set| set.container("helper", |helper| helper))
        .pod_set("node", |set| {
            let set = set.ancestor("trainer").count(4).nodes(true);
            let set = set.depends_on("helper", "Ready");
            set.container("node", |node| node.request("cpu", "2"))
        })
        .all_phases(&PLUGIN)
        .unwrap();
    let expected = json!({"minMembers": 4, "resources": {"cpu": "8"}});
    assert_eq!(outcome.objects()[0].value("/spec"), Some(&expected));
}

#[test]
fn the_label_of_another_group_is_replaced_with_a_warning() {
    let outcome = MockJob::new("bert")
        .all_granted()
        .pod_set("node", |set| {
            let set = set.pod_label("scheduling.example.com/group", "other");
            set.nodes(true).container("node", |node| node)
        })
        .all_phases(&PLUGIN)
        .unwrap();
    let label = "pod-sets[node].pod-labels[scheduling.example.com/group]";
    assert_eq!(outcome.value(label), Some(json!("bert")));
    let [warning] = &outcome.warnings()[..] else {
        unreachable!("{:?}", outcome.warnings())
    };
    let field = "[node].template.spec.template.metadata.labels[scheduling.example.com/group]";
    assert!(
        warning.contains("`other`") && warning.contains(field),
        "{warning}"
    );
}

//! The PodGroup counts the pods that start together and those that follow them, which have its annotation, and has their queue, priority and
//! topology. All other pods have the same queue.

use serde_json::{Value, json};
use trainyard_plugin_volcano::PLUGIN;
use trainyard_sdk::mock::Outcome;

use crate::common::{class, job, spec};

const GROUP: &str = "scheduling.k8s.io/group-name";
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

/// The value of an annotation of the pods of a pod set that the plugin set.
fn annotation(outcome: &Outcome, set: &str, key: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[{set}].pod-annotations[{key}]"))
}

#[test]
fn initializers_do_not_have_the_annotation() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    assert_eq!(annotation(&outcome, "node", GROUP), Some(json!("bert")));
    assert_eq!(annotation(&outcome, "dataset-initializer", GROUP), None);
}

#[test]
fn waiting_launcher_is_counted_and_has_the_annotation() {
    let outcome = job()
        .job_set_annotation(QUEUE, "research")
        .pod_set("launcher", |set| {
            let set = set.depends_on("node", "Ready");
            set.container("node", |c| c.limit("nvidia.com/gpu", "8"))
        })
        .all_phases(&PLUGIN)
        .unwrap();
    let spec = spec(&outcome);
    assert_eq!(spec["minMember"], 4);
    assert_eq!(spec["minResources"], json!({"nvidia.com/gpu": "40"}));
    assert_eq!(annotation(&outcome, "launcher", GROUP), Some(json!("bert")));
    assert_eq!(annotation(&outcome, "launcher", QUEUE), None);
}

#[test]
fn queue_is_that_of_the_job_set() {
    let job = job().job_set_annotation(QUEUE, "research");
    let outcome = job.all_phases(&PLUGIN).unwrap();
    assert_eq!(spec(&outcome)["queue"], "research");
}

#[test]
fn pods_outside_of_the_group_have_the_queue() {
    let job = || {
        job().pod_set("report", |set| {
            set.depends_on("node", "Complete")
                .pod_annotation(QUEUE, "reports")
                .container("report", |c| c)
        })
    };
    let outcome = job().job_set_annotation(QUEUE, "research");
    let outcome = outcome.all_phases(&PLUGIN).unwrap();
    let queue = |outcome: &Outcome, set: &str| annotation(outcome, set, QUEUE);
    let research = Some(json!("research"));
    assert_eq!(queue(&outcome, "dataset-initializer"), research);
    assert_eq!(queue(&outcome, "node"), None);
    assert_eq!(queue(&outcome, "report"), None, "its own is kept");
    let outcome = job().all_phases(&PLUGIN).unwrap();
    assert_eq!(queue(&outcome, "dataset-initializer"), None);
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
        let job = job().operator_config(json!({"schedulerName": "volcano"}));
        job.object(class(name)).pod_set("observer", move |set| {
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
fn scheduler_of_the_operator_is_set_on_pods_of_the_group() {
    let asked = job().operator_config(json!({"schedulerName": "volcano"}));
    let outcome = asked.all_phases(&PLUGIN).unwrap();
    let scheduler = |set: &str| outcome.value(&format!("pod-sets[{set}].scheduler-name"));
    assert_eq!(scheduler("node"), Some(json!("volcano")));
    assert_eq!(scheduler("dataset-initializer"), None);
    assert_eq!(outcome.warnings(), [""; 0]);
    let [warning] = &*job().all_phases(&PLUGIN).unwrap().warnings() else {
        unreachable!("no warning")
    };
    assert!(warning.contains("reads PodGroups of volcano"), "{warning}");
}

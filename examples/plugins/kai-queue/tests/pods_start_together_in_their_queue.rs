//! The pods that start together are members of one PodGroup in the queue, and KAI's podgrouper leaves them alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use kai_queue::PLUGIN;
use serde_json::{Value, json};
use trainyard_sdk::mock::{MockError, MockJob, MockPodSet, Outcome};

const MEMBER: &str = "pod-annotations[pod-group-name]";
const SKIP: &str = "pod-annotations[kai.scheduler/skip-podgrouper]";

fn node(set: MockPodSet) -> MockPodSet {
    set.ancestor("trainer")
        .count(4)
        .container("node", |node| node.image("train"))
}

/// Returns a TrainJob without pod sets in the queue `research`, which exists.
fn job(config: Value) -> MockJob {
    let queue = json!({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "research"}});
    MockJob::new("bert")
        .all_granted()
        .nodes(4)
        .config(config)
        .object(queue)
}

fn run(job: MockJob) -> Outcome {
    job.all_phases(&PLUGIN).unwrap()
}

/// Returns what the plugin wrote to a field of a pod set.
fn value(outcome: &Outcome, set: &str, field: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[{set}].{field}"))
}

#[test]
fn nodes_are_members_of_the_pod_group() {
    let config = json!({"queue": "research", "preemptible": false, "topology": {"name": "cluster", "required": "rack"}});
    let outcome = run(job(config).pod_set("node", |set| node(set).priority_class("high")));
    assert_eq!(value(&outcome, "node", MEMBER), Some(json!("bert")));
    assert_eq!(value(&outcome, "node", SKIP), Some(json!("true")));
    assert_eq!(
        value(&outcome, "node", "scheduler-name"),
        Some(json!("kai-scheduler"))
    );
    let objects = outcome.objects();
    assert_eq!(objects.len(), 1);
    let spec = json!({
        "minMember": 4, "queue": "research", "priorityClassName": "high", "preemptibility": "non-preemptible",
        "topologyConstraint": {"topology": "cluster", "requiredTopologyLevel": "rack"},
    });
    assert_eq!(objects[0].value("/spec"), Some(&spec));
}

#[test]
fn pods_that_run_before_the_nodes_start_alone() {
    let outcome = run(job(json!({"queue": "research"}))
        .pod_set("dataset", |set| {
            set.ancestor("dataset-initializer")
                .scheduler_name("kai-scheduler")
                .container("init", |init| init.image("fetch"))
        })
        .pod_set("model", |set| {
            set.ancestor("model-initializer")
                .container("init", |init| init.image("fetch"))
        })
        .pod_set("node", |set| {
            node(set)
                .depends_on("dataset", "Complete")
                .depends_on("model", "Complete")
        }));
    assert_eq!(
        value(&outcome, "dataset", MEMBER),
        Some(json!("bert-others"))
    );
    assert_eq!(value(&outcome, "dataset", SKIP), Some(json!("true")));
    // Another scheduler ignores the annotation.
    assert_eq!(value(&outcome, "model", MEMBER), None);
    let objects = outcome.objects();
    let groups: Vec<_> = objects
        .iter()
        .map(|group| group.value("/spec/minMember").cloned())
        .collect();
    assert_eq!(groups, [Some(json!(4)), Some(json!(1))]);
}

#[test]
fn a_launcher_that_follows_the_nodes_joins_them() {
    let outcome = run(job(json!({"queue": "research"}))
        .pod_set("node", |set| node(set).nodes(true))
        .pod_set("launcher", |set| {
            set.nodes(false)
                .ancestor("trainer")
                .depends_on("node", "Ready")
                .container("node", |node| node.image("train"))
        }));
    assert_eq!(value(&outcome, "launcher", MEMBER), Some(json!("bert")));
    assert_eq!(
        outcome.objects()[0].value("/spec/minMember"),
        Some(&json!(4))
    );
}

#[test]
fn pods_of_another_scheduler_are_refused() {
    let outcome = run(job(json!({"queue": "research"}))
        .pod_set("node", |set| node(set).scheduler_name("volcano")));
    let errors = outcome.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("is `volcano`, but only `kai-scheduler` reads the PodGroup")
            && errors[0].contains("replicatedJobs[node].template.spec.template.spec.schedulerName"),
        "{errors:?}"
    );
    let outcome = run(job(json!({"queue": "research"}))
        .operator_config(json!({"schedulerName": "volcano"}))
        .pod_set("node", |set| node(set).scheduler_name("volcano")));
    assert_eq!(outcome.errors(), [""; 0]);
}

#[test]
fn a_queue_that_does_not_exist_is_named() {
    let job = job(json!({"queue": "reserch"})).pod_set("node", node);
    let error = job.all_phases(&PLUGIN).unwrap_err();
    assert!(
        matches!(&error, MockError::NoObject(_)) && error.to_string().contains("reserch"),
        "{error}"
    );
}

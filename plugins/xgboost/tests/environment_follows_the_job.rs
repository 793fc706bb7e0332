//! The env vars of XGBoost follow the number of nodes, and the name and subdomain of the trainer's pods.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use trainyard_plugin_xgboost::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn job(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("higgs").all_granted().trainer(4, container)
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

#[test]
fn all_four_variables_and_the_port_are_set() {
    let outcome = job(|c| c).transform(&PLUGIN).unwrap();
    assert_eq!(
        env(&outcome, "DMLC_TRACKER_URI"),
        Some(json!("higgs-node-0-0.higgs"))
    );
    assert_eq!(env(&outcome, "DMLC_TRACKER_PORT"), Some(json!("29500")));
    let index = json!({"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}});
    assert_eq!(env(&outcome, "DMLC_TASK_ID"), Some(index));
    assert_eq!(env(&outcome, "DMLC_NUM_WORKER"), Some(json!("4")));
    assert_eq!(
        outcome.value(&format!("{NODE}.ports[29500/TCP]")),
        Some(json!({"containerPort": 29500}))
    );
}

#[test]
fn tracker_is_a_pod_of_the_trainer_in_its_subdomain() {
    let outcome = MockJob::new("higgs")
        .all_granted()
        .nodes(2)
        .subdomain("ring")
        .pod_set("model-initializer", |set| set.container("node", |c| c))
        .pod_set("workers", |set| {
            set.ancestor("trainer")
                .count(2)
                .container("node", |c| c.env("DMLC_TRACKER_PORT", "9091"))
        })
        .transform(&PLUGIN)
        .unwrap();
    let of = |pod_set: &str, name: &str| {
        outcome.value(&format!("pod-sets[{pod_set}].containers[node].env[{name}]"))
    };
    assert_eq!(
        of("workers", "DMLC_TRACKER_URI"),
        Some(json!("higgs-workers-0-0.ring"))
    );
    assert_eq!(of("workers", "DMLC_TRACKER_PORT"), Some(json!("29500")));
    assert_eq!(of("model-initializer", "DMLC_TRACKER_URI"), None);
}

#[test]
fn runtime_port_is_kept() {
    let outcome = job(|c| c.port(29500, "TCP", Some("tracker")))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.value(&format!("{NODE}.ports[29500/TCP]")), None);
}

#[test]
fn runtime_without_a_trainer_is_refused() {
    let error = MockJob::new("higgs")
        .all_granted()
        .pod_set("node", |set| set.container("node", |c| c))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("xgboost needs a container `node`")
            && error.contains("spec.template.spec.replicatedJobs"),
        "{error}"
    );
}

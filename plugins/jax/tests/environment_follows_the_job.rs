//! The env vars of JAX follow the number of nodes, and the name and subdomain of the trainer's pods.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Value, json};
use trainyard_plugin_jax::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn job(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("gemma").all_granted().trainer(4, container)
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

#[test]
fn all_three_variables_and_the_port_are_set() {
    let outcome = job(|c| c).transform(&PLUGIN).unwrap();
    assert_eq!(env(&outcome, "JAX_NUM_PROCESSES"), Some(json!("4")));
    let index = json!({"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}});
    assert_eq!(env(&outcome, "JAX_PROCESS_ID"), Some(index));
    assert_eq!(
        env(&outcome, "JAX_COORDINATOR_ADDRESS"),
        Some(json!("gemma-node-0-0.gemma:29500"))
    );
    assert_eq!(
        outcome.value(&format!("{NODE}.ports[29500/TCP]")),
        Some(json!({"containerPort": 29500}))
    );
}

#[test]
fn devices_do_not_change_the_number_of_processes() {
    let outcome = job(|c| c.limit("nvidia.com/gpu", "8"))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(env(&outcome, "JAX_NUM_PROCESSES"), Some(json!("4")));
}

#[test]
fn coordinator_is_a_pod_of_the_trainer_in_its_subdomain() {
    let outcome = MockJob::new("gemma")
        .all_granted()
        .nodes(2)
        .subdomain("ring")
        .pod_set("dataset-initializer", |set| set.container("node", |c| c))
        .pod_set("workers", |set| {
            set.ancestor("trainer")
                .count(2)
                .container("node", |c| c.env("JAX_PROCESS_ID", "7"))
        })
        .transform(&PLUGIN)
        .unwrap();
    let of = |pod_set: &str, name: &str| {
        outcome.value(&format!("pod-sets[{pod_set}].containers[node].env[{name}]"))
    };
    assert_eq!(
        of("workers", "JAX_COORDINATOR_ADDRESS"),
        Some(json!("gemma-workers-0-0.ring:29500"))
    );
    assert_eq!(of("dataset-initializer", "JAX_COORDINATOR_ADDRESS"), None);
    let index = of("workers", "JAX_PROCESS_ID").unwrap();
    assert!(index.pointer("/fieldRef/fieldPath").is_some(), "{index}");
}

#[test]
fn runtime_port_is_kept() {
    let outcome = job(|c| c.port(29500, "TCP", Some("coordinator")))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.value(&format!("{NODE}.ports[29500/TCP]")), None);
}

#[test]
fn runtime_without_a_trainer_is_refused() {
    let error = MockJob::new("gemma")
        .all_granted()
        .pod_set("node", |set| set.container("node", |c| c))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("jax needs a container `node`")
            && error.contains("spec.template.spec.replicatedJobs"),
        "{error}"
    );
}

#[test]
fn configuration_is_refused() {
    let error = job(|c| c)
        .config(json!({"numProcPerNode": 2}))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(error.contains("takes no configuration"), "{error}");
}

#[test]
fn processes_per_node_without_effect_are_reported() {
    let warnings = |job: MockJob| job.transform(&PLUGIN).unwrap().warnings();
    assert_eq!(warnings(job(|c| c).processes_per_node(1)), [""; 0]);
    let reported = warnings(job(|c| c).processes_per_node(8));
    let [warning] = &*reported else {
        panic!("{reported:?}");
    };
    assert!(
        warning.starts_with("spec.trainer.numProcPerNode: is 8, but has no effect"),
        "{warning}"
    );
}

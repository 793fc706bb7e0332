//! Nodes with accelerators get network devices, and what a user set stays.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};
use trainyard_template_fabric::PLUGIN;

const NIC: &str = "limits[example.com/nic]";
const GRANT: &str = "pod-sets[@nodes].containers[node].limits[example.com/nic]";

fn job(node: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    let job = MockJob::new("bert").grants(&[GRANT]);
    job.pod_set("node", |set| set.nodes(true).container("node", node))
}

/// Returns what the plugin wrote.
fn value(outcome: &Outcome, field: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[node].containers[node].{field}"))
}

#[test]
fn a_node_with_gpus_has_devices() {
    let job = job(|node| node.limit("nvidia.com/gpu", "8")).config(json!({"devices": 4}));
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(value(&outcome, NIC), Some(json!("4")));
    assert_eq!(value(&outcome, "env[NCCL_IB_HCA]"), Some(json!("nic")));
}

#[test]
fn a_node_without_gpus_has_none() {
    let outcome = job(|node| node).transform(&PLUGIN).unwrap();
    assert_eq!(value(&outcome, NIC), None);
    assert_eq!(value(&outcome, "env[NCCL_IB_HCA]"), None);
}

#[test]
fn what_the_user_set_stays() {
    let node = |node: MockContainer| {
        node.limit("nvidia.com/gpu", "8")
            .limit("example.com/nic", "2")
    };
    let job = job(|it| node(it).env("NCCL_IB_HCA", "mlx5"));
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(value(&outcome, NIC), None);
    assert_eq!(value(&outcome, "env[NCCL_IB_HCA]"), None);
}

#[test]
fn a_launcher_that_is_no_node_stays_as_it_is() {
    let job = job(|node| node.limit("nvidia.com/gpu", "8"));
    let outcome = job
        .pod_set("launcher", |set| {
            let set = set.ancestor("trainer").nodes(false);
            set.container("node", |node| node.limit("nvidia.com/gpu", "8"))
        })
        .transform(&PLUGIN)
        .unwrap();
    let launcher = format!("pod-sets[launcher].containers[node].{NIC}");
    assert_eq!(outcome.value(&launcher), None);
}

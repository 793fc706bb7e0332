//! Helpers for the tests of this crate.

use serde_json::{Value, json};
use trainyard_sdk::mock::{MockJob, MockPodSet};

pub const PER_NODE: &str = "trainyard.dev/resource-claims-per-node";

/// A TrainJob for the plugin with all its claims granted, as it ships.
pub fn mock() -> MockJob {
    MockJob::new("llama").all_granted()
}

/// A TrainJob `llama` with a trainer of two nodes.
pub fn job(build: impl FnOnce(MockPodSet) -> MockPodSet) -> MockJob {
    let node = |set: MockPodSet| {
        set.ancestor("trainer")
            .count(2)
            .container("node", |c| c.request("cpu", "4"))
    };
    mock().nodes(2).pod_set("node", |set| build(node(set)))
}

/// A ResourceClaimTemplate of these requests.
pub fn template(name: &str, requests: &Value) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": requests}}},
    })
}

/// One request `a` of four GPUs.
pub fn four_gpus() -> Value {
    let exactly =
        json!({"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 4});
    template("four-gpus", &json!([{"name": "a", "exactly": exactly}]))
}

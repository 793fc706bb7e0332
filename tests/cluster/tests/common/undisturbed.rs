//! A controller on a cluster that works.

use std::ffi::OsString;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Controlled, Setup, runtime};

/// Runtimes with the policy `torch`, with no policy, and with an initializer.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        let torch = json!({"torch": {}});
        vec![
            runtime_with("torch", &torch),
            runtime_with("plain", &json!({})),
            with_initializers(),
        ]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(vec!["--leader-elect".into()])
    }
}

/// A cluster without faults, with the controller and these runtimes.
pub(crate) type Undisturbed = Controlled<Runtimes>;

/// Returns the runtime `torch` with another name and this `mlPolicy`.
pub(crate) fn runtime_with(name: &str, policy: &Value) -> Value {
    let mut runtime = runtime();
    runtime["metadata"]["name"] = json!(name);
    runtime["spec"]["mlPolicy"] = policy.clone();
    runtime
}

fn with_initializers() -> Value {
    let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
    let mut node = step("node", "trainer", &mounts);
    node["dependsOn"] = json!([{"name": "dataset-initializer", "status": "Complete"}]);
    let initializer = step("dataset-initializer", "dataset-initializer", &mounts);
    let mut runtime = runtime_with("with-initializers", &json!({"torch": {}}));
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = json!([initializer, node]);
    runtime
}

fn step(name: &str, ancestor: &str, mounts: &Value) -> Value {
    json!({
        "name": name,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}},
            "spec": {"backoffLimit": 0, "template": {"spec": {
                "containers": [{"name": name, "image": "example.com/image", "volumeMounts": mounts}],
                "volumes": [{"name": "initializer", "emptyDir": {}}],
            }}},
        },
    })
}

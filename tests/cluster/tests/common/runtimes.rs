//! Runtimes of the built-in policies, and the pods that they lead to.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::runtime;

/// A runtime of MPI: the launcher's container runs `mpirun`, and that of the nodes an SSH server.
pub fn mpi(name: &str, launcher_is_node: bool) -> Value {
    let pod = |command: &str| {
        json!({"spec": {"backoffLimit": 0, "template": {"spec": {"containers": [
            {"name": "node", "image": "example.com/mpi", "command": [command]}]}}}})
    };
    let mut launcher = pod("mpirun");
    launcher["metadata"] =
        json!({"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}});
    let mut runtime = runtime();
    runtime["metadata"]["name"] = json!(name);
    runtime["spec"]["mlPolicy"] =
        json!({"numNodes": 1, "mpi": {"runLauncherAsNode": launcher_is_node}});
    runtime["spec"]["template"]["spec"] = json!({
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
        "replicatedJobs": [
            {"name": "node", "template": pod("sshd")},
            {"name": "launcher", "dependsOn": [{"name": "node", "status": "Ready"}], "template": launcher},
        ],
    });
    runtime
}

/// The runtime `flux`.
pub fn flux() -> Value {
    let mut flux = runtime();
    flux["metadata"]["name"] = json!("flux");
    flux["spec"]["mlPolicy"] = json!({"flux": {}});
    flux
}

/// What a label of JobSet's says of a pod.
fn label<'p>(pod: &'p Pod, key: &str) -> &'p str {
    let labels = pod.metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(&format!("jobset.sigs.k8s.io/{key}")));
    label.map_or("", String::as_str)
}

/// The replicated job of a pod.
pub fn replicated_job(pod: &Pod) -> &str {
    label(pod, "replicatedjob-name")
}

/// The JobSet of a pod.
pub fn job_set(pod: &Pod) -> &str {
    label(pod, "jobset-name")
}

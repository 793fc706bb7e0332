//! Runtimes of the built-in policies, and their pods.

use std::{fs, path::Path};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::PodGroups;
use trainyard_plugin_folders::{root, runtimes};

use super::runtime;

/// Returns the runtime `plain`, which has no policy.
pub(crate) fn plain() -> Value {
    let mut plain = runtime();
    plain["metadata"]["name"] = json!("plain");
    if let Some(spec) = plain["spec"].as_object_mut() {
        spec.remove("mlPolicy");
    }
    plain
}

/// Returns a runtime of MPI: the launcher's container runs `mpirun`, and the nodes' container runs an SSH server.
pub(crate) fn mpi(name: &str, launcher_is_node: bool) -> Value {
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

/// Returns the runtime `flux`, which has no `backoffLimit` and no failure policy.
pub(crate) fn flux() -> Value {
    let mut flux = runtime();
    flux["metadata"]["name"] = json!("flux");
    flux["spec"]["mlPolicy"] = json!({"flux": {}});
    let job = flux.pointer_mut("/spec/template/spec/replicatedJobs/0/template/spec");
    if let Some(Value::Object(job)) = job {
        job.remove("backoffLimit");
    }
    flux
}

/// Returns a runtime whose nodes are a gang that starts after an initializer. Its name is the key of `podGroupPolicy`.
pub(crate) fn gang(kind: PodGroups) -> Value {
    let step = |name: &str, ancestor: &str, cpu: u32| {
        let container = json!({"name": name, "image": "example.com/image", "resources": {"requests": {"cpu": cpu}}});
        json!({
            "name": name,
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}},
                "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [container]}}},
            },
        })
    };
    let initializer = step("dataset-initializer", "dataset-initializer", 1);
    let mut node = step("node", "trainer", 2);
    node["dependsOn"] = json!([{"name": "dataset-initializer", "status": "Complete"}]);
    let mut runtime = runtime();
    runtime["metadata"]["name"] = json!(kind.policy());
    runtime["spec"]["podGroupPolicy"] = json!({kind.policy(): {}});
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = json!([initializer, node]);
    runtime
}

/// Returns a shipped runtime.
///
/// # Panics
/// There is none with this name.
pub(crate) fn shipped(name: &str) -> Value {
    first(&runtimes(&root()).unwrap_or_default()[name])
}

/// Returns the runtime of a folder in examples/.
///
/// # Panics
/// There is none in this folder.
pub(crate) fn of_example(name: &str) -> Value {
    first(&root().join("examples").join(name).join("runtime.yaml"))
}

/// Returns the first object in a file of this repository.
fn first(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_default();
    let documents = yaml::read(&text).into_iter();
    let mut values = documents.filter_map(|document| Some(document.ok()?.value));
    let runtime = values.next().unwrap_or_default();
    assert!(runtime.is_object(), "{} has no runtime", file.display());
    runtime
}

/// Returns the value of one of JobSet's labels on a pod.
fn label<'p>(pod: &'p Pod, key: &str) -> &'p str {
    let labels = pod.metadata.labels.as_ref();
    let label = labels.and_then(|labels| labels.get(&format!("jobset.sigs.k8s.io/{key}")));
    label.map_or("", String::as_str)
}

/// Returns the replicated job of a pod.
pub(crate) fn replicated_job(pod: &Pod) -> &str {
    label(pod, "replicatedjob-name")
}

/// Returns the JobSet of a pod.
pub(crate) fn job_set(pod: &Pod) -> &str {
    label(pod, "jobset-name")
}

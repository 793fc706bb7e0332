//! The environment of torchrun follows the TrainJob, the runtime and the resources of the node container.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn job(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("bert").all_granted().trainer(4, container)
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

#[test]
fn all_five_variables_and_the_port_are_set() {
    let outcome = job(|c| c.request("nvidia.com/gpu", "8"))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(env(&outcome, "PET_NNODES"), Some(json!("4")));
    assert_eq!(env(&outcome, "PET_NPROC_PER_NODE"), Some(json!("auto")));
    assert_eq!(
        env(&outcome, "PET_MASTER_ADDR"),
        Some(json!("bert-node-0-0.bert"))
    );
    assert_eq!(env(&outcome, "PET_MASTER_PORT"), Some(json!("29500")));
    let rank = json!({"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}});
    assert_eq!(env(&outcome, "PET_NODE_RANK"), Some(rank));
    assert_eq!(
        outcome.value(&format!("{NODE}.ports[29500/TCP]")),
        Some(json!({"containerPort": 29500}))
    );
}

#[test]
fn number_of_processes_follows_the_train_job() {
    let processes =
        |job: MockJob| env(&job.transform(&PLUGIN).unwrap(), "PET_NPROC_PER_NODE").unwrap();
    assert_eq!(processes(job(|c| c.request("cpu", "2500m"))), "3");
    assert_eq!(processes(job(|c| c)), "1");
    assert_eq!(
        processes(job(|c| c.limit("amd.com/gpu", "4")).processes_per_node(2)),
        "2"
    );
    assert_eq!(
        processes(job(|c| c).config(json!({"numProcPerNode": "gpu"}))),
        "gpu"
    );
    assert_eq!(
        processes(job(|c| c.request("cpu", "7")).config(json!({"numProcPerNode": "cpu"}))),
        "7"
    );
}

/// Nodes of 8 CPUs whose container uses devices of a claim.
fn claimed(count: Option<u32>) -> MockJob {
    MockJob::new("dra").all_granted().pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.request("cpu", "8"))
            .claimed_devices("gpu", count)
    })
}

/// A node with devices that are not accelerators is not reported as a node without devices.
#[test]
fn reason_names_the_resources_of_the_node() {
    let why = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        outcome.reason(&format!("{NODE}.env[PET_NPROC_PER_NODE]"))
    };
    for (job, wanted) in [
        (
            job(|c| c.request("example.com/unknown", "4")),
            "a node requests no known accelerator: its CPUs",
        ),
        (
            claimed(Some(0)),
            "none of a node's devices counts as an accelerator: its CPUs",
        ),
        (
            claimed(Some(4)),
            "the accelerators of a node's resource claims",
        ),
        (
            claimed(None),
            "the number of accelerators in a node's resource claims is not known",
        ),
        (
            job(|c| c.request("nvidia.com/gpu", "8")),
            "a node has accelerators, which torchrun counts",
        ),
    ] {
        assert_eq!(why(job).as_deref(), Some(wanted));
    }
}

#[test]
fn claimed_devices_are_counted() {
    let with = |count| {
        let outcome = claimed(count).transform(&PLUGIN).unwrap();
        env(&outcome, "PET_NPROC_PER_NODE").unwrap()
    };
    assert_eq!(with(Some(4)), "4");
    assert_eq!(with(None), "auto");
}

#[test]
fn runtime_port_is_kept() {
    let outcome = job(|c| c.port(29500, "TCP", Some("rendezvous")))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.value(&format!("{NODE}.ports[29500/TCP]")), None);
}

#[test]
fn invalid_configuration_is_refused_by_the_schema() {
    let error = job(|c| c)
        .config(json!({"numProcPerNode": 0}))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(error.contains("numProcPerNode"), "{error}");
}

#[test]
fn nodes_that_cannot_meet_cause_a_warning() {
    let warnings = |nodes: u32| {
        let job = MockJob::new("bert").all_granted().nodes(nodes);
        let job = job.without_host_names().pod_set("node", |set| {
            set.ancestor("trainer")
                .count(nodes)
                .not_indexed()
                .container("node", |c| c)
        });
        job.transform(&PLUGIN).unwrap().warnings()
    };
    let found = warnings(2);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("enableDNSHostnames: is false, so Torch")
            && found[1].contains("completionMode: is `NonIndexed`, so Torch"),
        "{found:?}"
    );
    // A single node may run without torchrun.
    assert_eq!(warnings(1), [""; 0]);
}

//! Elastic training has the runtime's minimum and restarts, and the TrainJob's number of nodes as its maximum. What a JobSet cannot do, whose
//! number of pods is fixed while it runs, is refused.

use serde_json::{Value, json};
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn with(
    nodes: u32,
    backoff_limit: u32,
    config: Value,
    container: impl FnOnce(MockContainer) -> MockContainer,
) -> MockJob {
    let job = MockJob::new("llm").all_granted().nodes(nodes);
    let job = job.pod_set("node", |set| {
        set.ancestor("trainer")
            .count(nodes)
            .backoff_limit(backoff_limit)
            .container("node", container)
    });
    job.config(config)
}

fn job(config: Value) -> MockJob {
    with(4, 100, config, |c| c)
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

/// Returns the errors of a refused TrainJob.
fn errors(job: MockJob) -> String {
    job.transform(&PLUGIN).unwrap().errors().join("\n")
}

#[test]
fn least_number_of_nodes_can_be_all_of_them() {
    assert_eq!(errors(job(json!({"elastic": {"minNodes": 4}}))), "");
    assert!(errors(job(json!({"elastic": {"minNodes": 5}}))).contains("is 5"));
}

#[test]
fn group_has_the_bounds_of_the_runtime() {
    for (config, nodes, restarts) in [
        (
            json!({"elastic": {"minNodes": 2, "maxRestarts": 9}}),
            "2:4",
            "9",
        ),
        (json!({"elastic": {"minNodes": 1}}), "1:4", "3"),
        (json!({"elastic": {}}), "4:4", "3"),
        (
            json!({"elasticPolicy": {"minNodes": 2, "maxNodes": 4, "maxRestarts": 0, "metrics": []}}),
            "2:4",
            "0",
        ),
    ] {
        let outcome = job(config.clone()).transform(&PLUGIN).unwrap();
        for (name, wanted) in [
            ("PET_NNODES", nodes),
            ("PET_MAX_RESTARTS", restarts),
            ("PET_RDZV_BACKEND", "c10d"),
            ("PET_RDZV_ENDPOINT", "llm-node-0-0.llm:29500"),
            ("PET_RDZV_ID", "llm"),
            ("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"),
        ] {
            assert_eq!(env(&outcome, name), Some(json!(wanted)), "{config}: {name}");
        }
    }
    let outcome = job(json!({})).transform(&PLUGIN).unwrap();
    assert_eq!(env(&outcome, "PET_NNODES"), Some(json!("4")));
    assert_eq!(env(&outcome, "PET_RDZV_BACKEND"), None);
}

#[test]
fn values_of_users_are_kept() {
    let job = with(4, 100, json!({"elastic": {}}), |c| {
        c.env("PET_RDZV_BACKEND", "etcd-v2")
    });
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(env(&outcome, "PET_RDZV_BACKEND"), None);
    assert_eq!(env(&outcome, "PET_RDZV_ID"), Some(json!("llm")));
}

#[test]
fn what_a_job_set_cannot_do_is_refused() {
    for (config, wanted) in [
        (
            json!({"elastic": {"minNodes": 5}}),
            "spec.mlPolicy.torch.elastic.minNodes: is 5, but the TrainJob has 4 nodes, and a JobSet does not add any while it runs; lower it, or raise `numNodes`",
        ),
        (
            json!({"elasticPolicy": {"minNodes": 2, "maxNodes": 8}}),
            "spec.mlPolicy.torch.elasticPolicy.maxNodes: is 8, but the TrainJob has 4 nodes, and a JobSet neither adds nor removes any while it runs; set `numNodes` to 8, or replace `elasticPolicy` with `elastic`, whose maximum is `numNodes`",
        ),
        (
            json!({"elasticPolicy": {"metrics": [{"type": "Resource"}]}}),
            "spec.mlPolicy.torch.elasticPolicy.metrics: must be empty, because a JobSet neither adds nor removes nodes while it runs; remove it",
        ),
        (
            json!({"elastic": {}, "elasticPolicy": {}}),
            "spec.mlPolicy.torch.elasticPolicy: must not be set together with `spec.mlPolicy.torch.elastic`; remove it",
        ),
    ] {
        let found = errors(job(config));
        assert!(found.contains(wanted), "{found}");
    }
}

#[test]
fn recipes_of_torchtune_are_refused() {
    let job = with(1, 6, json!({"elastic": {}}), |c| {
        c.command(&["tune", "run"]).limit("nvidia.com/gpu", "2")
    });
    let found = errors(job);
    let wanted = "spec.mlPolicy.torch.elastic: must not be set for torchtune";
    assert!(found.contains(wanted), "{found}");
}

/// Without the first node, all others restart, and the Job counts each of them.
#[test]
fn job_that_fails_with_its_first_node_causes_a_warning() {
    let warnings = |nodes: u32, limit: u32| {
        let job = with(nodes, limit, json!({"elastic": {}}), |c| c);
        job.transform(&PLUGIN).unwrap().warnings()
    };
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.backoffLimit: is 6, but if the first node is lost, all 8 nodes restart, and the Job counts each of them, and fails; set it to at least 24";
    assert_eq!(warnings(8, 6), [warning]);
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.backoffLimit: is 0, so the Job fails if any node is lost; set it to at least 24";
    assert_eq!(warnings(8, 0), [warning]);
    assert_eq!(warnings(8, 24), [""; 0]);
    assert_eq!(warnings(6, 6), [""; 0]);
}

//! `envInjection` gives its targets, containers and init containers, the same five env vars. If a target is missing, the TrainJob is
//! refused with the path in the runtime.

use serde_json::{Value, json};
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockJob, Outcome};

const VARIABLES: [&str; 5] = [
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
];

fn job(targets: Value) -> MockJob {
    MockJob::new("bert")
        .all_granted()
        .nodes(2)
        .subdomain("ring")
        .config(json!({"envInjection": {"targets": targets}}))
        .pod_set("proxy", |set| set.container("sidecar", |c| c))
        .pod_set("worker", |set| {
            set.ancestor("trainer")
                .count(2)
                .init_container("warm-up", |c| c.env("PET_NNODES", "9"))
                .container("node", |c| c.request("cpu", "3"))
                .container("logger", |c| c)
        })
}

fn env(outcome: &Outcome, container: &str) -> Vec<Value> {
    let value = |name| outcome.value(&format!("pod-sets{container}.env[{name}]"));
    VARIABLES.into_iter().filter_map(value).collect()
}

fn refused(targets: Value) -> String {
    job(targets).transform(&PLUGIN).unwrap_err().to_string()
}

#[test]
fn targets_get_all_five_variables_and_others_none() {
    let targets = json!([
        {"jobName": "worker", "containerNames": ["warm-up"]},
        {"jobName": "proxy", "containerNames": ["sidecar"]},
    ]);
    let outcome = job(targets).transform(&PLUGIN).unwrap();
    let node = env(&outcome, "[worker].containers[node]");
    // The address is of the trainer's own pod set and subdomain, whatever they are called (W27).
    assert_eq!(node.get(3), Some(&json!("bert-worker-0-0.ring")));
    assert_eq!(node.len(), VARIABLES.len());
    assert_eq!(env(&outcome, "[worker].init-containers[warm-up]"), node);
    assert_eq!(env(&outcome, "[proxy].containers[sidecar]"), node);
    assert_eq!(
        env(&outcome, "[worker].containers[logger]"),
        [Value::Null; 0]
    );
}

#[test]
fn port_is_opened_only_in_the_node_container() {
    let targets = json!([{"jobName": "proxy", "containerNames": ["sidecar"]}]);
    let outcome = job(targets).transform(&PLUGIN).unwrap();
    let ports: Vec<_> = outcome
        .writes()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.contains("ports"))
        .collect();
    assert_eq!(
        ports,
        ["pod-sets[worker].containers[node].ports[29500/TCP]"]
    );
}

#[test]
fn missing_target_is_refused_with_its_path() {
    let error = refused(json!([{"jobName": "proxi", "containerNames": ["sidecar"]}]));
    assert!(
        error.contains("spec.mlPolicy.torch.envInjection.targets[0].jobName")
            && error.contains("`proxi`"),
        "{error}"
    );
    let error = refused(json!([
        {"jobName": "worker", "containerNames": ["logger"]},
        {"jobName": "proxy", "containerNames": ["sidecar", "logger"]},
    ]));
    assert!(
        error.contains("spec.mlPolicy.torch.envInjection.targets[1].containerNames[1]"),
        "{error}"
    );
}

#[test]
fn schema_bounds_are_enforced() {
    let many = vec![json!({"jobName": "proxy", "containerNames": ["sidecar"]}); 17];
    let nine: Vec<_> = (0..9).map(|n| format!("c{n}")).collect();
    for (targets, place) in [
        (json!(many), "envInjection.targets"),
        (
            json!([{"jobName": "", "containerNames": ["sidecar"]}]),
            "envInjection.targets[0].jobName",
        ),
        (
            json!([{"jobName": "proxy", "containerNames": []}]),
            "envInjection.targets[0].containerNames",
        ),
        (
            json!([{"jobName": "proxy", "containerNames": nine}]),
            "envInjection.targets[0].containerNames",
        ),
        (
            json!([{"jobName": "proxy", "containerNames": ["a", "a"]}]),
            "envInjection.targets[0].containerNames",
        ),
        (
            json!([{"jobName": "worker", "containerNames": ["node"]}]),
            "envInjection.targets[0].containerNames[0]",
        ),
        (
            json!([{"jobName": "proxy", "containers": ["a"]}]),
            "envInjection.targets[0]",
        ),
    ] {
        let error = refused(targets);
        assert!(error.contains(&format!("{place}: ")), "{place}: {error}");
    }
}

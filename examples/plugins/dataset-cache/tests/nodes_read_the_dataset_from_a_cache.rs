//! The nodes mount a cache that another container fills with the dataset, and data that users mount is not replaced.

#![allow(clippy::unwrap_used)]

use dataset_cache::PLUGIN;
use serde_json::{Value, json};
use trainyard_sdk::mock::{MockContainer, MockError, MockJob, Outcome};

/// The grants of policy.yaml.
const GRANTS: [&str; 2] = [
    "pod-sets[@nodes].init-containers[dataset-cache]",
    "pod-sets[@nodes].volumes[dataset-cache-credentials]",
];

/// Returns a configuration with these members in addition to those that are required.
fn config(members: Value) -> Value {
    let mut config =
        json!({"image": "fetch:1", "command": ["copy", "$(DATASET_SOURCE)", "$(DATASET_PATH)"]});
    let members = members.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(members);
    config
}

fn run_with(
    members: Value,
    node: impl FnOnce(MockContainer) -> MockContainer,
) -> Result<Outcome, MockError> {
    let datasets = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "datasets"},
        "data": {"imagenet": "s3://datasets/imagenet", "wiki": "s3://datasets/wiki"},
    });
    MockJob::new("bert")
        .grants(&GRANTS)
        .config(config(members))
        .catalog_object(datasets)
        .pod_set("node", |set| set.nodes(true).container("node", node))
        .pod_set("launcher", |set| {
            let set = set.ancestor("trainer").nodes(false);
            set.container("node", |node| node)
        })
        .all_phases(&PLUGIN)
}

fn run(members: Value) -> Result<Outcome, MockError> {
    run_with(members, |node| node)
}

/// Returns what the plugin wrote to a field of the nodes.
fn value(outcome: &Outcome, field: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[node].{field}"))
}

#[test]
fn an_init_container_fills_the_cache_of_the_nodes() {
    let outcome =
        run(json!({"dataset": "imagenet", "sizeLimit": "500Gi", "requests": {"cpu": "2"}}))
            .unwrap();
    let cache = |field: &str| value(&outcome, &format!("init-containers[dataset-cache].{field}"));
    assert_eq!(cache("image"), Some(json!("fetch:1")));
    assert_eq!(
        cache("env[DATASET_SOURCE]"),
        Some(json!("s3://datasets/imagenet"))
    );
    assert_eq!(cache("requests[cpu]"), Some(json!("2")));
    assert_eq!(cache("restart-policy"), None);
    let volume = json!({"name": "dataset-cache", "emptyDir": {"sizeLimit": "500Gi"}});
    assert_eq!(value(&outcome, "volumes[dataset-cache]"), Some(volume));
    let mount = |container: &str| {
        let field = format!("{container}.mounts[/var/cache/dataset]");
        let mount = value(&outcome, &field).unwrap();
        mount.get("readOnly").cloned()
    };
    assert_eq!(mount("containers[node]"), Some(json!(true)));
    assert_eq!(mount("init-containers[dataset-cache]"), None);
    assert!(
        outcome
            .writes()
            .iter()
            .all(|(path, _)| !path.starts_with("pod-sets[launcher]"))
    );
}

#[test]
fn a_sidecar_fills_the_cache_while_training_runs() {
    let outcome = run(json!({"source": "s3://own", "fill": "whileTraining"})).unwrap();
    let cache = "init-containers[dataset-cache]";
    assert_eq!(
        value(&outcome, &format!("{cache}.restart-policy")),
        Some(json!("Always"))
    );
    assert_eq!(
        value(&outcome, &format!("{cache}.env[DATASET_SOURCE]")),
        Some(json!("s3://own"))
    );
}

#[test]
fn only_the_container_that_fills_the_cache_has_the_credentials() {
    let outcome = run(json!({"dataset": "wiki", "credentialsSecret": "s3"})).unwrap();
    let mount =
        |container: &str| value(&outcome, &format!("{container}.mounts[/etc/dataset-cache]"));
    assert!(mount("init-containers[dataset-cache]").is_some());
    assert_eq!(mount("containers[node]"), None);
    let volume = json!({"name": "dataset-cache-credentials", "secret": {"secretName": "s3"}});
    assert_eq!(
        value(&outcome, "volumes[dataset-cache-credentials]"),
        Some(volume)
    );
}

#[test]
fn data_that_the_user_mounts_is_not_replaced() {
    let outcome = run_with(json!({"dataset": "wiki"}), |node| {
        node.mount("own", "/var/cache/dataset")
    });
    assert_eq!(outcome.unwrap().writes(), []);
}

#[test]
fn wrong_configurations_are_refused() {
    for (members, problem) in [
        (json!({"dataset": "wikipedia"}), "use one of imagenet, wiki"),
        (json!({}), "must have `dataset` or `source`"),
        (json!({"dataset": "wiki", "source": "s3://own"}), "not both"),
        (json!({"dataset": "../wiki"}), "dataset"),
    ] {
        let error = run(members).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

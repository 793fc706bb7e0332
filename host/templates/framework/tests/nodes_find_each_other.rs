//! Each node knows how many there are, its own number, and the address of the first one.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use trainyard_sdk::mock::{MockJob, Outcome};
use trainyard_template_framework::PLUGIN;

fn job() -> MockJob {
    MockJob::new("bert").nodes(4).pod_set("node", |set| {
        set.ancestor("trainer")
            .count(4)
            .container("node", |node| node.image("registry.example.com/train:1"))
    })
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[node].containers[node].env[{name}]"))
}

#[test]
fn nodes_know_the_first_one() {
    let outcome = job().transform(&PLUGIN).unwrap();
    assert_eq!(env(&outcome, "FRAMEWORK_NODES"), Some(json!("4")));
    assert_eq!(
        env(&outcome, "FRAMEWORK_ADDRESS"),
        Some(json!("bert-node-0-0.bert:29400"))
    );
}

#[test]
fn the_runtime_sets_the_port() {
    let job = job().config(json!({"port": 4000}));
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(
        env(&outcome, "FRAMEWORK_ADDRESS"),
        Some(json!("bert-node-0-0.bert:4000"))
    );
}

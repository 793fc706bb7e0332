//! `explain` names who set a field, from what and why; a path in the record's or in the JobSet's spelling narrows it.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn explain(args: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/torch-llama");
    Command::new(env!("CARGO_BIN_EXE_trainyard"))
        .args(["explain", "-f"])
        .arg(example)
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn text(output: Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The fields that `explain` lists, with the words of one line each.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn a_plugins_field_has_its_value_and_reason() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].env[PET_NNODES]",
    ]));
    let row = "pod-sets[node].containers[node].env[PET_NNODES] torch 0.1.0 4 - the number of nodes";
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn a_train_jobs_field_has_the_runtimes_value_and_the_path_that_asked() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].requests[memory]",
    ]));
    let row = "pod-sets[node].containers[node].requests[memory] TrainJob 1536Gi 1Ti spec.trainer.resourcesPerNode.requests[memory]";
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn the_job_sets_spelling_finds_the_same() {
    let container = "spec.replicatedJobs[0].template.spec.template.spec.containers[0]";
    let by_job_set = text(explain(&[&format!("{container}.env")]));
    let by_record = text(explain(&["pod-sets[node].containers[node].env"]));
    assert_eq!(by_job_set, by_record);
    assert_eq!(rows(&by_record).len(), 6, "{by_record}");
    let count = text(explain(&[
        "spec.replicatedJobs[0].template.spec.parallelism",
    ]));
    assert!(count.contains("pod-sets[node].count"), "{count}");
}

#[test]
fn as_json_the_plugin_has_its_version_and_digest() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].ports",
        "-o",
        "json",
    ]));
    let explained: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        explained.pointer("/0/trainJob"),
        Some(&Value::from("llama-sft"))
    );
    let by = explained
        .pointer("/0/fields/0/steps/0/by")
        .unwrap()
        .to_string();
    for part in ["torch", "0.1.0", "sha256:", "the nodes meet on this port"] {
        assert!(by.contains(part), "{by}");
    }
}

#[test]
fn a_field_that_nobody_set_is_an_error() {
    let output = explain(&["spec.suspend"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("neither a plugin nor a TrainJob set `spec.suspend`"),
        "{error}"
    );
}

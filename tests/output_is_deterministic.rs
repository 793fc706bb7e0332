//! `render` prints the same bytes in every run, in both formats, from files, folders and standard input.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{fs, path::Path};

use crate::common::{case, root, stdout, trainyard, trainyard_with_input};

/// Returns the standard output of a run in a case's folder.
fn run(args: &[&str], name: &str) -> String {
    stdout(&trainyard(&case(name), args))
}

#[test]
fn repeated_runs_print_the_same() {
    let first = run(&["render", "-f", "input.yaml"], "torch-two-jobs");
    for _ in 0..5 {
        assert_eq!(
            run(&["render", "-f", "input.yaml"], "torch-two-jobs"),
            first
        );
    }
}

#[test]
fn standard_input_renders_as_a_file() {
    let input = fs::read_to_string(case("torch-two-jobs").join("input.yaml")).unwrap();
    let output = trainyard_with_input(&input, &["render", "-f", "-"]);
    assert_eq!(
        stdout(&output),
        run(&["render", "-f", "input.yaml"], "torch-two-jobs")
    );
}

#[test]
fn json_output_is_one_list_of_the_same_objects() {
    let json = run(
        &["render", "-f", "input.yaml", "-o", "json"],
        "torch-two-jobs",
    );
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (list["apiVersion"].as_str(), list["kind"].as_str()),
        (Some("v1"), Some("List"))
    );
    let yaml = run(&["render", "-f", "input.yaml"], "torch-two-jobs");
    let documents: Vec<_> = trainyard_api::yaml::read(&yaml)
        .into_iter()
        .map(|d| d.unwrap().value)
        .collect();
    assert_eq!(list["items"].as_array().unwrap(), &documents);
}

#[test]
fn printed_objects_round_trip() {
    let yaml = run(&["render", "-f", "input.yaml"], "nemo-tcpxo");
    let inputs = trainyard_api::Inputs::read_text("out", &yaml);
    assert!(inputs.errors.is_empty());
    assert_eq!(inputs.objects.len(), 1);
}

#[test]
fn printed_crds_match_the_deployment() {
    let deployed = root().join("charts/trainyard/files/crds");
    let files = [
        "clustertrainingruntimes",
        "trainingruntimes",
        "trainjobs",
        "pluginrevisions",
        "policyplugins",
    ];
    let files =
        files.map(|name| fs::read_to_string(deployed.join(format!("{name}.yaml"))).unwrap());
    let printed = stdout(&trainyard(Path::new("."), &["crds"]));
    assert_eq!(printed, files.join("---\n"));
}

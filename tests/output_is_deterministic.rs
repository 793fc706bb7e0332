//! What `render` prints is the same byte for byte from run to run, in both formats, from files, folders and standard input.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/cases")
        .join(name)
}

fn trainyard(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainyard"));
    command.args(args).env("NO_COLOR", "1");
    command
}

fn run(args: &[&str], folder: &Path) -> Output {
    let output = trainyard(args).current_dir(folder).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn repeated_runs_print_the_same() {
    let folder = case("torch-two-jobs");
    let first = run(&["render", "-f", "input.yaml"], &folder).stdout;
    for _ in 0..5 {
        assert_eq!(run(&["render", "-f", "input.yaml"], &folder).stdout, first);
    }
}

#[test]
fn standard_input_renders_as_a_file() {
    let folder = case("torch-two-jobs");
    let text = std::fs::read(folder.join("input.yaml")).unwrap();
    let mut child = trainyard(&["render", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert_eq!(
        child.wait_with_output().unwrap().stdout,
        run(&["render", "-f", "input.yaml"], &folder).stdout
    );
}

#[test]
fn json_output_is_one_list_of_the_same_objects() {
    let folder = case("torch-two-jobs");
    let json = run(&["render", "-f", "input.yaml", "-o", "json"], &folder).stdout;
    let list: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        (list["apiVersion"].as_str(), list["kind"].as_str()),
        (Some("v1"), Some("List"))
    );
    let yaml = String::from_utf8(run(&["render", "-f", "input.yaml"], &folder).stdout).unwrap();
    let documents: Vec<_> = trainyard_api::yaml::read(&yaml)
        .into_iter()
        .map(|d| d.unwrap().value)
        .collect();
    assert_eq!(list["items"].as_array().unwrap(), &documents);
}

#[test]
fn printed_objects_round_trip() {
    let folder = case("nemo-tcpxo");
    let yaml = String::from_utf8(run(&["render", "-f", "input.yaml"], &folder).stdout).unwrap();
    let inputs = trainyard_api::Inputs::read_text("out", &yaml);
    assert!(inputs.errors.is_empty());
    assert_eq!(inputs.objects.len(), 1);
}

#[test]
fn printed_crds_match_the_deployment() {
    let deployed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let files = ["clustertrainingruntimes", "trainingruntimes", "trainjobs"];
    let files =
        files.map(|name| std::fs::read_to_string(deployed.join(format!("{name}.yaml"))).unwrap());
    let printed = run(&["crds"], Path::new(".")).stdout;
    assert_eq!(String::from_utf8(printed).unwrap(), files.join("---\n"));
}

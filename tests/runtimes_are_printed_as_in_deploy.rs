//! `trainyard runtimes` contains the runtimes in the folders of the plugins, unchanged, applies them, and its table fits on a page.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_plugin_folders::runtimes;

use crate::common::{
    api_server::{serve, write_kubeconfig},
    command, root, stderr, stdout, trainyard_with_input,
};

/// Returns the texts of the runtimes by name.
fn files() -> BTreeMap<String, String> {
    let files = runtimes(&root()).unwrap().into_iter();
    files
        .map(|(name, file)| (name, fs::read_to_string(file).unwrap()))
        .collect()
}

fn printed(args: &[&str]) -> String {
    stdout(&command(args).output().unwrap())
}

#[test]
fn each_runtime_is_printed_with_its_comments() {
    for (name, text) in files() {
        let value: Value = yaml::read(&text).remove(0).unwrap().value;
        assert_eq!(value["metadata"]["name"], name.as_str());
        assert_eq!(printed(&["runtimes", &name]), text, "{name}");
    }
}

#[test]
fn several_runtimes_are_printed_as_documents() {
    let files = files();
    let all: Vec<_> = files.values().map(String::as_str).collect();
    assert_eq!(printed(&["runtimes", "--all"]), all.join("---\n"));
    let two = printed(&["runtimes", "torch-distributed", "jax-distributed"]);
    let wanted = format!(
        "{}---\n{}",
        files["jax-distributed"], files["torch-distributed"]
    );
    assert_eq!(two, wanted);
}

#[test]
fn list_has_every_runtime_and_fits_in_100_columns() {
    let list = printed(&["runtimes"]);
    let rows: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "FRAMEWORK", "NODES", "IMAGE"]);
    let names: Vec<_> = rows.iter().skip(1).map(|row| row[0]).collect();
    assert_eq!(names, files().keys().collect::<Vec<_>>());
    for (row, line) in rows.iter().zip(list.lines()) {
        assert_eq!(row.len(), 4, "{line}");
        assert!(!row.contains(&"-"), "{line}");
        assert!(line.len() <= 100, "{line}");
    }
    let tune = rows.iter().find(|row| row[0] == "torchtune-llama3.2-1b");
    let image = "ghcr.io/kubeflow/trainer/torchtune-trainer:v2.3.0";
    assert_eq!(tune.unwrap()[1..], ["torchtune", "1", image]);
}

#[test]
fn unknown_name_is_refused_with_a_similar_one() {
    let output = command(&["runtimes", "jax-distributed", "torch-distribted"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let error = stderr(&output);
    assert!(
        error.contains("tip: a similar value exists: 'torch-distributed'"),
        "{error}"
    );
}

#[test]
fn completions_offer_the_names() {
    for shell in ["bash", "zsh"] {
        let script = printed(&["completions", shell]);
        for name in files().keys() {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
}

/// The output can be rendered and validated in a pipe.
#[test]
fn printed_runtimes_are_an_input() {
    let all = printed(&["runtimes", "--all"]);
    let output = trainyard_with_input(&all, &["validate", "-f", "-"]);
    let count = format!("{} runtimes\n", files().len());
    assert!(stdout(&output).ends_with(&count), "{}", stdout(&output));
}

#[test]
fn runtimes_to_apply_have_to_be_selected() {
    let output = command(&["runtimes", "--apply"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("--all"), "{error}");
}

#[test]
fn runtimes_are_not_printed_if_they_cannot_be_applied() {
    let args = ["runtimes", "--all", "--apply", "--kubeconfig", "/none.yaml"];
    let output = command(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(
        stderr(&output).contains("/none.yaml"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn runtimes_are_applied() {
    let applied = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "applied"},
    });
    let (url, calls) = serve(move |_, _| (200, applied.clone()));
    let folder = tempfile::tempdir().unwrap();
    write_kubeconfig(folder.path(), &[("here", &url)]);
    let names = ["jax-distributed", "torch-distributed"];
    let output = command(&["runtimes", names[0], names[1], "--apply", "--kubeconfig"])
        .arg(folder.path().join("kubeconfig"))
        .output()
        .unwrap();
    assert_eq!(
        stdout(&output),
        "jax-distributed applied\ntorch-distributed applied\n",
        "{}",
        stderr(&output)
    );
    for (name, call) in names.iter().zip(calls) {
        let path = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/";
        assert!(call.starts_with(&format!("{path}{name}?")), "{call}");
    }
}

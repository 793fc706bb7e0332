//! A built-in plugin with a feature gate runs only if the gate is on, in every command. With the gate off, it changes nothing, and the policy
//! file and TrainJobs may name it anyway.

use std::fs;

use serde_json::Value;
use trainyard_api::yaml;

use crate::common::{expect, runtime, stderr, stdout, trainyard};

const ON: &str = "--feature-gates=TrainJobStatus=true";

/// A folder with a TrainJob of Torch and its runtime.
fn input(annotations: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime("name: torch", "mlPolicy: {numNodes: 2, torch: {}},", "");
    let job = format!(
        "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: bert, namespace: ml{annotations}}}\nspec: {{runtimeRef: {{name: torch}}}}\n"
    );
    fs::write(folder.path().join("input.yaml"), runtime + &job).unwrap();
    folder
}

#[test]
fn pods_report_progress_if_the_gate_is_on() {
    let folder = input("");
    let render = |more: &[&str]| {
        let arguments = [&["render", "-f", "input.yaml"], more].concat();
        stdout(&trainyard(folder.path(), &arguments))
    };
    expect("progress.yaml", &render(&[ON]));
    assert_eq!(render(&["--feature-gates=AllAlpha=true"]), render(&[ON]));
    let off = render(&[]);
    assert!(!off.contains("KUBEFLOW_TRAINER_SERVER"), "{off}");
    for none in ["--feature-gates=", "--feature-gates=TrainJobStatus=false"] {
        assert_eq!(render(&[none]), off);
    }
}

/// The operator may give pods another way to the status server.
#[test]
fn the_policy_file_can_set_the_url() {
    let folder = input("");
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nfacts: {status/url: \"https://progress.example.com/\"}\n";
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let arguments = ["render", "-f", "input.yaml", "--policy", "policy.yaml", ON];
    let rendered = stdout(&trainyard(folder.path(), &arguments));
    let url = "https://progress.example.com/apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/bert/status";
    assert!(rendered.contains(url), "{rendered}");
}

/// One policy file serves clusters with and without the gate, and so does one TrainJob.
#[test]
fn the_plugin_can_be_named_while_its_gate_is_off() {
    let folder = input(", annotations: {trainyard.dev/disabled-plugins: train-job-status}");
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: train-job-status, trainJobsMayDisable: true}]\n";
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    for gate in ["--feature-gates=TrainJobStatus=false", ON] {
        let arguments = [
            "render",
            "-f",
            "input.yaml",
            "--policy",
            "policy.yaml",
            gate,
        ];
        let rendered = stdout(&trainyard(folder.path(), &arguments));
        assert!(!rendered.contains("KUBEFLOW_TRAINER_SERVER"), "{rendered}");
    }
}

#[test]
fn unknown_gates_are_refused() {
    let folder = input("");
    let output = trainyard(
        folder.path(),
        &[
            "render",
            "-f",
            "input.yaml",
            "--feature-gates=TrainJob=true",
        ],
    );
    let error = stderr(&output);
    assert!(
        error.contains("`TrainJob` is not a feature gate"),
        "{error}"
    );
}

#[test]
fn permissions_of_the_status_server_need_the_gate() {
    let folder = input("");
    let rules = |more: &[&str]| {
        let output = stdout(&trainyard(folder.path(), &[&["rbac"], more].concat()));
        let role = yaml::read(&output).remove(0).unwrap().value;
        let rules = role.get("rules").and_then(Value::as_array).unwrap().clone();
        rules.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (off, on) = (rules(&[]), rules(&[ON]));
    let more: Vec<_> = on.iter().filter(|rule| !off.contains(rule)).collect();
    assert_eq!(
        more,
        [
            r#"{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}"#,
            r#"{"apiGroups":["authentication.k8s.io"],"resources":["tokenreviews"],"verbs":["create"]}"#,
        ]
    );
    assert_eq!(on.len(), off.len() + 2);
}

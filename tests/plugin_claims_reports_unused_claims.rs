//! `trainyard plugin claims` reports the claims and grants that no call used, and those that a call lacked.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use trainyard_cluster::with_manifest;

use crate::common::{runtime, stderr, test_plugin, trainyard};

/// The claims of the plugin flavors that a TrainJob with the label `example.com/flavor` needs, and others.
const READS: [&str; 2] = [
    "lookups[example.com/v1/Flavor/default]",
    "lookups[late.example.com/v1/Zone/main]",
];

/// Runs `plugin claims` on the plugin flavors with these claims and this policy file.
fn run(folder: &Path, reads: &[&str], policy: Option<&str>, flags: &[&str]) -> Output {
    let component = fs::read(test_plugin("flavors")).unwrap();
    let manifest = json!({
        "name": "flavors", "version": "0.1.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
        "claims": {"reads": reads, "writes": ["pod-sets[*].pod-labels[example.com/*]"]},
    });
    let component = with_manifest(&component, &manifest.to_string()).unwrap();
    fs::write(folder.join("flavors.wasm"), component).unwrap();
    let case = folder.join("cases/flavor");
    fs::create_dir_all(&case).unwrap();
    let own = runtime("name: own", "plugins: [{name: flavors}],", "");
    let input = format!(
        "{own}---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: bert, labels: {{example.com/flavor: \"\"}}}}
spec: {{runtimeRef: {{name: own}}}}
---
apiVersion: example.com/v1
kind: Flavor
metadata: {{name: default}}
spec: {{gpu: h100}}
"
    );
    fs::write(case.join("input.yaml"), input).unwrap();
    let mut args = vec!["plugin", "claims", "flavors.wasm", "--cases", "cases"];
    if let Some(policy) = policy {
        fs::write(folder.join("policy.yaml"), policy).unwrap();
        args.extend(["--policy", "policy.yaml"]);
    }
    args.extend(flags);
    trainyard(folder, &args)
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn policy(grants: &[&str]) -> String {
    json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": "flavors"},
        "spec": {"grants": grants},
    })
    .to_string()
}

#[test]
fn unused_claims_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &READS, None, &["-o", "json"]);
    let warnings = stderr(&output);
    assert!(output.status.success(), "{warnings}");
    assert_eq!(
        warnings,
        "warning: plugin flavors: manifest.json: claims.reads: no call used `lookups[late.example.com/v1/Zone/main]`; remove it, or add a case that needs it\n"
    );
    let claims = &report(&output)["claims"];
    let used: Vec<_> = claims
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| &claim["used"])
        .collect();
    assert_eq!(used, [true, false, true]);
    let table = String::from_utf8(run(folder.path(), &READS, None, &[]).stdout).unwrap();
    let line = table
        .lines()
        .find(|line| line.contains("Zone/main"))
        .unwrap();
    assert!(
        line.starts_with("reads ") && line.ends_with(" no"),
        "{table}"
    );
}

#[test]
fn a_missing_claim_is_an_error_with_the_claim() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &READS[1..], None, &["-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let missing = json!([{"list": "reads", "path": READS[0]}]);
    assert_eq!(report(&output)["missing"], missing);
    let error = stderr(&output);
    let wanted = format!(
        "manifest.json: claims.reads: a call needs `{}`; add it",
        READS[0]
    );
    assert!(error.contains(&wanted), "{error}");
}

#[test]
fn grants_wider_than_the_used_claims_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let exact = policy(&[READS[0]]);
    let output = run(folder.path(), &READS[..1], Some(&exact), &["-o", "json"]);
    assert_eq!(stderr(&output), "");
    assert_eq!(report(&output)["wideGrants"], json!([]));
    let wide = "lookups[example.com/v1/Flavor/*]";
    let unused = "pod-sets[*].node-selector[example.com/pool]";
    let policy = policy(&[wide, unused]);
    let output = run(folder.path(), &READS[..1], Some(&policy), &["-o", "json"]);
    assert!(output.status.success());
    let expected = json!([{"grant": wide, "enough": [READS[0]]}, {"grant": unused, "enough": []}]);
    assert_eq!(report(&output)["wideGrants"], expected);
    let warnings = stderr(&output);
    assert!(
        warnings.contains(&format!("grant `{}` instead", READS[0])),
        "{warnings}"
    );
}

/// As in a cluster, a plugin whose claims are not granted is not loaded.
#[test]
fn claims_beyond_the_policy_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &READS, Some(&policy(&READS[..1])), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let error = stderr(&output);
    assert!(
        error.contains(&format!("`{}`, which is not granted", READS[1])),
        "{error}"
    );
}

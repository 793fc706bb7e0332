//! What the policy file says of a plugin holds for built-in ones too, and is told beside everything else that is wrong.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, process::Command};

/// What a command says on standard error, which must refuse.
fn refused(command: &str, policy: &str, input: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let output = Command::new(env!("CARGO_BIN_EXE_trainyard"))
        .args([command, "-f"])
        .arg(write("input.yaml", input))
        .arg("--policy")
        .arg(write("policy.yaml", policy))
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

const NO_JOB: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";

fn policy(of_torch: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: torch, {of_torch}}}]"
    )
}

#[test]
fn a_pinned_digest_is_the_only_one() {
    let wanted = format!("sha256:{}", "0".repeat(64));
    let error = refused("plan", &policy(&format!("digest: \"{wanted}\"")), NO_JOB);
    assert!(
        error.contains(&format!(
            "only the digest {wanted} is accepted under this name"
        )),
        "{error}"
    );
}

#[test]
fn plugins_and_input_are_judged_in_one_run() {
    for command in ["plan", "render", "explain"] {
        let error = refused(command, &policy("config: {a: 1}"), NO_JOB);
        assert!(
            error.contains("there is no TrainJob in the input"),
            "{error}"
        );
        assert!(error.contains("torch"), "{error}");
    }
}

//! Runs commands under a policy file.

use std::{fs, process::Output};

use super::{declared_plugin::policy_plugins, trainyard};

/// Runs a command on an input under a policy file.
pub fn run(arguments: &[&str], policy: impl AsRef<[u8]>, input: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), input).unwrap();
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let files = ["-f", "input.yaml", "--policy", "policy.yaml"];
    trainyard(folder.path(), &[arguments, &files].concat())
}

/// Returns the standard error of a command, which must refuse its input.
pub fn refused(command: &str, policy: impl AsRef<[u8]>, input: &str) -> String {
    refused_with(&[command], policy, input)
}

/// Returns the standard error of a command with arguments, which must refuse its input.
pub fn refused_with(arguments: &[&str], policy: impl AsRef<[u8]>, input: &str) -> String {
    let output = run(arguments, policy, input);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// An input without a TrainJob.
pub const NO_JOB: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";

/// Returns a PolicyPlugin with these settings of Torch.
pub fn policy(of_torch: &str) -> String {
    policy_plugins(&format!("[{{name: torch, {of_torch}}}]"))
}

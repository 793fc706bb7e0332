//! `trainyard controller --print-config` merges file, flags, environment and defaults into a file that gives the same configuration.

use std::{fs, path::Path, process::Command};

use trainyard_api::yaml;

use crate::common::{command, root, stderr};

const FILE: &str = "\
apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 1m30s}
controller: {concurrency: 32}
logging: {level: warn}
policyFile: missing.yaml
";

/// Prints the configuration, with these flags, in a folder.
fn print_config(folder: &Path, flags: &[&str]) -> Command {
    let mut command = command(&["controller", "--print-config"]);
    command.args(flags).current_dir(folder);
    for name in ["LOG", "CACHE_DIR", "CACHE_SIZE", "COMPILED_DIR"] {
        command.env_remove(format!("TRAINYARD_{name}"));
    }
    command
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn printed_file_gives_the_same_configuration() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.yaml"), FILE).unwrap();
    let flags = [
        "--config=c.yaml",
        "--concurrency=64",
        "--metrics-bind-address=0",
    ];
    let first = printed(print_config(folder.path(), &flags).env("TRAINYARD_LOG", "debug"));
    for line in [
        "  leaseDuration: 1m30s",
        "  concurrency: 64",
        "  bindAddress: \"0\"",
        "  level: debug",
        "  renewDeadline: 10s",
        "policyFile: missing.yaml",
    ] {
        assert!(first.lines().any(|it| it == line), "no {line}: {first}");
    }
    assert!(!first.contains('#'), "{first}");
    fs::write(folder.path().join("printed.yaml"), &first).unwrap();
    let second = printed(&mut print_config(folder.path(), &["--config=printed.yaml"]));
    assert_eq!(first, second);
}

#[test]
fn flags_without_a_key_are_comments() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = print_config(folder.path(), &["--plugin=a.wasm", "--cache-size=1Gi"]);
    let text = printed(
        command
            .env("TRAINYARD_COMPILED_DIR", "compiled\n- x")
            .env("TRAINYARD_LOG", "info,trainyard_controller=debug"),
    );
    let comments: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        comments,
        [
            "# --plugin=a.wasm has no key; pass it with --config",
            "# --cache-size=1073741824 has no key; pass it with --config",
            "# --compiled-dir=compiled - x has no key; pass it with --config",
            "# TRAINYARD_LOG=info,trainyard_controller=debug takes precedence over logging.level",
        ]
    );
}

/// A kubeconfig is neither read nor printed, and the file of the Kubeflow Trainer becomes one of Trainyard.
#[test]
fn printed_file_has_no_credentials_and_needs_no_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "planted-token-6e1f";
    fs::write(folder.path().join("kubeconfig"), secret).unwrap();
    let file = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\nmetrics: {bindAddress: ':8443', secureServing: false}\n";
    fs::write(folder.path().join("c.yaml"), file).unwrap();
    let text = printed(&mut print_config(
        folder.path(),
        &["--kubeconfig=kubeconfig", "--config=c.yaml"],
    ));
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains("kind: ControllerConfiguration"), "{text}");
    assert!(text.contains("bindAddress: \":8443\""), "{text}");
}

#[test]
fn invalid_values_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |flags: &[&str], code| {
        let output = print_config(folder.path(), flags).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{flags:?}");
        assert!(output.stdout.is_empty(), "{flags:?}");
        stderr(&output)
    };
    // No file could express it.
    let error = refused(&["--concurrency=1025"], 2);
    assert!(error.contains("from 1 to 1024"), "{error}");
    let error = refused(&["--config=absent.yaml"], 1);
    assert!(error.contains("absent.yaml"), "{error}");
}

/// The schema that is printed accepts the file that is printed, and the one that is deployed.
#[test]
fn printed_schema_accepts_printed_and_deployed_files() {
    let folder = tempfile::tempdir().unwrap();
    let schema = printed(&mut command(&["config-schema"]));
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let deployed = fs::read_to_string(root().join("deploy/controller.yaml")).unwrap();
    for text in [printed(&mut print_config(folder.path(), &[])), deployed] {
        let documents: Result<Vec<_>, _> = yaml::read(&text).into_iter().collect();
        let document = documents.unwrap().remove(0);
        assert!(schema.is_valid(&document.value), "{text}");
    }
    let other = serde_json::json!({"apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyFile"});
    assert!(!schema.is_valid(&other));
}

//! `trainyard plugin new` creates plugins that work: their tests pass, they are built, and they render their case as expected.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::common::{root, stderr};

const KINDS: [&str; 4] = ["framework", "scheduler", "fabric", "sidecar"];

fn run(program: &str, args: &[&str], folder: &Path) -> Output {
    let built = Path::new(env!("CARGO_BIN_EXE_trainyard"));
    let target = built.ancestors().nth(2).unwrap();
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        // The new crate does not belong to the workspace whose cargo runs this test.
        if name.to_string_lossy().starts_with("CARGO_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

fn trainyard(args: &[&str], folder: &Path) -> Output {
    run(env!("CARGO_BIN_EXE_trainyard"), args, folder)
}

fn new(name: &str, kind: &str, folder: &Path) -> Output {
    let sdk = root().join("plugins/sdk");
    let sdk = sdk.to_str().unwrap();
    trainyard(
        &["plugin", "new", name, "--kind", kind, "--sdk", sdk],
        folder,
    )
}

/// Renders the case of a plugin that was built.
fn rendered(name: &str, folder: &Path) -> Output {
    let file = format!("{name}.wasm");
    let mut args = vec!["render", "-f", "cases/basic/input.yaml", "--plugin", &file];
    if folder.join("policy.yaml").exists() {
        args.extend(["--policy", "policy.yaml"]);
    }
    trainyard(&args, folder)
}

fn succeeded(output: &Output, what: &str) {
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{what}: {printed}{}",
        stderr(output)
    );
}

#[test]
fn every_kind_is_tested_built_and_rendered() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        // After the built-in plugins' names, because additions are in the order of names.
        let name = format!("z-{kind}");
        succeeded(&new(&name, kind, folder.path()), kind);
        let crate_folder = folder.path().join(&name);
        for entry in [
            "README.md",
            "manifest.json",
            "src/lib.rs",
            ".github/workflows/test.yaml",
        ] {
            let text = fs::read_to_string(crate_folder.join(entry)).unwrap();
            assert!(!text.contains("template"), "{entry}: {text}");
        }
        succeeded(&run("cargo", &["test", "--quiet"], &crate_folder), kind);
        let built = format!("{name}.wasm");
        let args = ["plugin", "build", ".", "--output", &built];
        succeeded(&trainyard(&args, &crate_folder), kind);
        let output = rendered(&name, &crate_folder);
        succeeded(&output, kind);
        let printed = String::from_utf8(output.stdout).unwrap();
        let expected = crate_folder.join("cases/basic/expected.yaml");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            let (own, template) = (name.replace('-', "_"), kind.to_uppercase());
            let printed =
                printed.replace(&format!("{}_", own.to_uppercase()), &format!("{template}_"));
            let file = format!("host/templates/{kind}/cases/basic/expected.yaml");
            fs::write(root().join(file), printed).unwrap();
            continue;
        }
        assert_eq!(printed, fs::read_to_string(expected).unwrap(), "{kind}");
    }
}

#[test]
fn a_refused_plugin_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], problem: &str| {
        let output = trainyard(args, folder.path());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let error = stderr(&output);
        assert!(error.contains(problem), "{error}");
    };
    let sdk = root().join("plugins/sdk");
    let sdk = sdk.to_str().unwrap();
    for name in ["Upper", "9lives", "a_b", "a/b", ""] {
        refused(
            &["plugin", "new", name, "--kind", "fabric", "--sdk", sdk],
            "cannot be the name of a plugin",
        );
    }
    for (name, taken) in [
        ("self", "a keyword of Rust"),
        ("serde-json", "a crate that the plugin needs"),
        ("torch", "a built-in plugin"),
    ] {
        refused(
            &["plugin", "new", name, "--kind", "fabric", "--sdk", sdk],
            &format!("`{name}` is the name of {taken}; choose another name"),
        );
    }
    let args = ["plugin", "new", "mine", "--kind", "fabric", "--sdk", sdk];
    refused(
        &[&args[..], &["--dir", "absent/mine"]].concat(),
        "absent does not exist; create it",
    );
    refused(
        &["plugin", "new", "mine", "--kind", "fabric", "--sdk", "."],
        "is not the SDK's folder",
    );
    fs::create_dir(folder.path().join("taken")).unwrap();
    refused(
        &["plugin", "new", "taken", "--kind", "fabric", "--sdk", sdk],
        "taken exists; choose another name",
    );
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// A plugin that no runtime can activate is refused when it is built.
#[test]
fn a_key_that_no_runtime_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    succeeded(&new("other", "framework", folder.path()), "new");
    let crate_folder = folder.path().join("other");
    let manifest = crate_folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("mlPolicy.plugin", "mlPolicy.other")).unwrap();
    let output = trainyard(&["plugin", "build", "."], &crate_folder);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    let wanted = "`activeWhen` is `mlPolicy.other`, but a runtime's `mlPolicy` has no such key (flux, jax, mpi, torch, xgboost)";
    assert!(
        error.contains(wanted) && error.contains("write `mlPolicy.plugin`"),
        "{error}"
    );
    assert!(!crate_folder.join("other.wasm").exists());
}

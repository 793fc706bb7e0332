//! `trainyard plugin new` creates plugins that work: their tests pass, they have no mistakes and no unused claims, they render their case as
//! expected, and `plugin test` finds faults in them.

use std::{env, fs, path::Path, process::Output};

use serde_json::{Map, Value};

use crate::common::{
    plugin_folder::{cases_are_as_expected, created, new, run, succeeded, trainyard},
    root, stderr, stdout,
};

const KINDS: [&str; 4] = ["framework", "scheduler", "fabric", "sidecar"];

/// The expected objects of a new plugin's case with its own runtime.
const EXPECTED: &str = "cases/basic/expected.yaml";

/// Writes the expected objects to the template.
fn update_template(kind: &str, name: &str, printed: &str) {
    let (own, template) = (name.replace('-', "_"), kind.to_uppercase());
    let printed = printed.replace(&format!("{}_", own.to_uppercase()), &format!("{template}_"));
    let file = format!("host/templates/{kind}/{EXPECTED}");
    fs::write(root().join(file), printed).unwrap();
}

#[test]
fn every_kind_is_tested_checked_and_built() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let name = format!("z-{kind}");
        let crate_folder = created(&name, kind, "rust", folder.path());
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
        succeeded(&trainyard(&["plugin", "check"], &crate_folder), kind);
        let of_template = fs::read_to_string(crate_folder.join(EXPECTED)).unwrap();
        let update = ["plugin", "test", "--update"];
        succeeded(&trainyard(&update, &crate_folder), kind);
        let expected = fs::read_to_string(crate_folder.join(EXPECTED)).unwrap();
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            update_template(kind, &name, &expected);
        } else {
            assert_eq!(expected, of_template, "{kind}");
        }
        let printed = cases_are_as_expected(&crate_folder, kind);
        // A runtime has one framework, and the shipped ones have another.
        let is_skipped = printed.contains("a runtime has at most one");
        assert_eq!(is_skipped, kind == "framework", "{printed}");
        let built = format!("{name}.wasm");
        let args = ["plugin", "build", ".", "--output", &built];
        succeeded(&trainyard(&args, &crate_folder), kind);
        other_languages_have_its_manifest(kind, &crate_folder.join(built));
        // It builds the crate anew in another directory, which takes long.
        if kind == "sidecar" {
            succeeded(&trainyard(&["plugin", "conform"], &crate_folder), kind);
        }
    }
}

/// Compares the manifest of a plugin in another language with the one that the SDK adds to in Rust.
fn other_languages_have_its_manifest(kind: &str, plugin: &Path) {
    let inspect = ["plugin", "inspect", "-o", "json", plugin.to_str().unwrap()];
    let inspected = trainyard(&inspect, &root());
    let mut inspected: Value = serde_json::from_str(&stdout(&inspected)).unwrap();
    let manifest = inspected["manifest"].as_object_mut().unwrap();
    if env::var_os("UPDATE_EXPECTED").is_some() {
        let schema = serde_json::to_string_pretty(&manifest["configSchema"]).unwrap();
        let file = format!("host/templates/{kind}/config.schema.json");
        fs::write(root().join(file), schema + "\n").unwrap();
        return;
    }
    // `plugin wrap` adds these.
    for added in ["contract", "phases"] {
        assert!(manifest.remove(added).is_some());
    }
    let folder = tempfile::tempdir().unwrap();
    let name = plugin.file_stem().unwrap().to_str().unwrap();
    let other = created(name, kind, "c", folder.path());
    let text = fs::read_to_string(other.join("manifest.json")).unwrap();
    let other: Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(
        &other, manifest,
        "UPDATE_EXPECTED=1 writes {kind}/config.schema.json"
    );
}

/// Runs `plugin test` on a changed source, which must fail, and returns its report.
fn with_fault(crate_folder: &Path, from: &str, to: &str) -> String {
    let file = crate_folder.join("src/lib.rs");
    let source = fs::read_to_string(&file).unwrap();
    assert!(source.contains(from), "{source}");
    fs::write(&file, source.replace(from, to)).unwrap();
    let tested = trainyard(&["plugin", "test"], crate_folder);
    fs::write(&file, source).unwrap();
    assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
    String::from_utf8(tested.stdout).unwrap()
}

#[test]
fn faults_in_a_new_plugin_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let crate_folder = created("faulty", "fabric", "rust", folder.path());
    let update = ["plugin", "test", "--update"];
    succeeded(&trainyard(&update, &crate_folder), "update");

    let value = with_fault(
        &crate_folder,
        r#""NCCL_IB_DISABLE", "0""#,
        r#""NCCL_IB_DISABLE", "1""#,
    );
    let wanted = "[node].template.spec.template.spec.containers[node].env[NCCL_IB_DISABLE].value
      expected: \"0\"
      found:    \"1\"
      set by:   faulty 0.1.0 (a node with accelerators has network devices)";
    assert!(value.contains(wanted), "{value}");

    // A launcher that runs as a node is the second pod set of nodes, which only the runtimes for MPI have.
    let missed = with_fault(
        &crate_folder,
        "in ctx.info().nodes()",
        "in ctx.info().nodes().into_iter().take(1)",
    );
    assert!(
        !missed.contains("case basic with its own runtimes"),
        "{missed}"
    );
    assert!(
        missed.contains("case basic with openmpi-distributed:"),
        "{missed}"
    );
    let (_, never) = missed.split_once("faulty never wrote to:").unwrap();
    assert!(never.contains("openmpi-distributed"), "{missed}");
}

#[test]
fn a_refused_plugin_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |output: &Output, problem: &str| {
        assert_eq!(output.status.code(), Some(1), "{problem}");
        let error = stderr(output);
        assert!(error.contains(problem), "{error}");
    };
    for language in ["rust", "go"] {
        for name in ["Upper", "9lives", "a_b", "a/b", ""] {
            let problem = "cannot be the name of a plugin";
            refused(&new(name, "fabric", language, folder.path()), problem);
        }
        let built_in = "`torch` is the name of a built-in plugin; choose another name";
        refused(&new("torch", "fabric", language, folder.path()), built_in);
    }
    for (name, taken) in [
        ("self", "a keyword of Rust"),
        ("serde-json", "a crate that the plugin needs"),
    ] {
        refused(
            &new(name, "fabric", "rust", folder.path()),
            &format!("`{name}` is the name of {taken}; choose another name"),
        );
        created(name, "fabric", "go", folder.path());
    }
    let in_dir = [
        "plugin",
        "new",
        "mine",
        "--kind",
        "fabric",
        "--language",
        "c",
    ];
    let in_dir = [&in_dir[..], &["--dir", "absent/mine"]].concat();
    let parent = "absent does not exist; create it";
    refused(&trainyard(&in_dir, folder.path()), parent);
    let rust = ["plugin", "new", "mine", "--kind", "fabric"];
    let without = "--sdk: a plugin in Rust needs the SDK's folder";
    refused(&trainyard(&rust, folder.path()), without);
    let not_sdk = [&rust[..], &["--sdk", "."]].concat();
    refused(
        &trainyard(&not_sdk, folder.path()),
        "is not the SDK's folder",
    );
    fs::create_dir(folder.path().join("taken")).unwrap();
    for language in ["rust", "python"] {
        let exists = "taken exists; choose another name";
        refused(&new("taken", "fabric", language, folder.path()), exists);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    // Those two, and the one that existed.
    assert_eq!(left.len(), 3, "{left:?}");
}

/// A plugin that no runtime can activate is refused when it is built.
#[test]
fn a_key_that_no_runtime_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let crate_folder = created("other", "framework", "rust", folder.path());
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

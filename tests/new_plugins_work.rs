//! `trainyard plugin new` creates plugins that work: their tests pass, they have no mistakes and no unused claims, they render their case as
//! expected, and `plugin test` finds faults in them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{fs, path::Path, process::Output};

use crate::common::{
    plugin_crate::{cases_are_as_expected, run, succeeded, trainyard},
    root, stderr,
};

const KINDS: [&str; 4] = ["framework", "scheduler", "fabric", "sidecar"];

fn new(name: &str, kind: &str, folder: &Path) -> Output {
    let sdk = root().join("plugins/sdk");
    let sdk = sdk.to_str().unwrap();
    trainyard(
        &["plugin", "new", name, "--kind", kind, "--sdk", sdk],
        folder,
    )
}

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
    }
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
    succeeded(&new("faulty", "fabric", folder.path()), "new");
    let crate_folder = folder.path().join("faulty");
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

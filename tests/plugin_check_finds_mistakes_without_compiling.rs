//! `trainyard plugin check` finds mistakes in a plugin although its code does not compile, in Rust and in other languages.

use std::{fs, path::Path};

use crate::common::{plugin_folder, stderr, stdout, trainyard};

/// Creates a plugin whose code does not compile.
fn created(language: &str, source: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = plugin_folder::created("mine", "fabric", language, folder.path());
    fs::write(own.join(source), "no code").unwrap();
    folder
}

/// Creates a crate.
fn created_crate() -> tempfile::TempDir {
    created("rust", "src/lib.rs")
}

/// Changes a file of the plugin. Returns the errors of the check.
fn errors_with(folder: &Path, file: &str, from: &str, to: &str) -> String {
    let path = folder.join("mine").join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
    let output = trainyard(folder, &["plugin", "check", "mine"]);
    fs::write(&path, text).unwrap();
    assert_eq!(output.status.code(), Some(1), "{file}: {to}");
    assert!(output.stdout.is_empty());
    stderr(&output)
}

#[test]
fn a_plugin_without_mistakes_is_accepted() {
    for folder in [created_crate(), created("c", "plugin.c")] {
        let printed = stdout(&trainyard(folder.path(), &["plugin", "check", "mine"]));
        let wanted = "mine: plugin mine 0.1.0: found no mistakes in its manifest with 3 claims and in 1 case\n";
        assert_eq!(printed, wanted);
    }
}

/// Without a crate, the manifest has what the SDK adds in Rust.
#[test]
fn mistakes_are_found_without_a_crate() {
    let folder = created("python", "plugin.py");
    for (file, from, to, wanted) in [
        (
            "manifest.json",
            "\"name\": \"mine\",",
            "",
            "manifest.json: the plugin's manifest (manifest.json and what the build adds) is not valid: the manifest is not valid: `name`: is missing",
        ),
        (
            "manifest.json",
            "\"mine\"",
            "\"torch\"",
            "two plugins have the name `torch`",
        ),
        (
            "manifest.json",
            "\"maximum\"",
            "\"maximun\"",
            "configSchema",
        ),
        (
            "manifest.json",
            "\"activeWhen\"",
            "\"phases\": [\"transfrom\"], \"activeWhen\"",
            "transfrom",
        ),
        (
            "policy.yaml",
            "name: mine",
            "name: mime",
            "no loaded plugin has the name `mime`; did you mean `mine`?",
        ),
        (
            "cases/basic/input.yaml",
            "runtimeRef: {name: example}",
            "runtimeRef: {name: exmple}",
            "or did you mean `example`?",
        ),
    ] {
        let errors = errors_with(folder.path(), file, from, to);
        assert!(errors.contains(wanted), "{file}: {to}: {errors}");
    }
}

#[test]
fn mistakes_are_found() {
    let folder = created_crate();
    for (file, from, to, wanted) in [
        (
            "manifest.json",
            "\"claims\"",
            "\"claim\"",
            "manifest.json: the plugin's manifest (manifest.json and what the build adds) is not valid: the manifest is not valid: `claim`: unknown field; did you mean `claims`?",
        ),
        (
            "manifest.json",
            "pod-sets[@nodes].devices[*]",
            "pod-sets[@nodse].devices[*]",
            "did you mean `@nodes`?",
        ),
        (
            "manifest.json",
            "\"plugins\"",
            "\"mlPolicy.mine\"",
            "`activeWhen` is `mlPolicy.mine`, but a runtime's `mlPolicy` has no such key",
        ),
        (
            "manifest.json",
            "env[NCCL_*]",
            "env[PET_*]",
            "plugins `mine` and `torch` both write",
        ),
        (
            "Cargo.toml",
            "\"mine\"",
            "\"torch\"",
            "two plugins have the name `torch`",
        ),
        (
            "Cargo.toml",
            "\"cdylib\", ",
            "",
            "mine is not a plugin: its Cargo.toml needs",
        ),
        (
            "policy.yaml",
            "grants:",
            "grant:",
            "spec.grant: unknown field",
        ),
        (
            "policy.yaml",
            "limits[example.com/nic]",
            "limits[example.com/nics]",
            "which is not granted; add `grants:",
        ),
        (
            "policy.yaml",
            "name: mine",
            "name: mime",
            "no loaded plugin has the name `mime`; did you mean `mine`?",
        ),
        (
            "cases/basic/input.yaml",
            "numNodes: 2\n    command",
            "nodes: 2\n    command",
            "case basic: input.yaml:",
        ),
        (
            "cases/basic/input.yaml",
            "plugins: [{name: mine",
            "plugins: [{name: mime",
            "spec.plugins[0].name",
        ),
        (
            "cases/basic/input.yaml",
            "runtimeRef: {name: example}",
            "runtimeRef: {name: exmple}",
            "or did you mean `example`?",
        ),
    ] {
        let errors = errors_with(folder.path(), file, from, to);
        assert!(errors.contains(wanted), "{file}: {to}: {errors}");
        assert!(errors.starts_with("error: "), "{errors}");
    }
}

/// The TrainJob of such a case has mistakes on purpose.
#[test]
fn cases_that_are_refused_may_have_mistakes() {
    let folder = created_crate();
    let expected = folder.path().join("mine/cases/basic/expected.txt");
    fs::write(expected, "error: ...\n").unwrap();
    let input = folder.path().join("mine/cases/basic/input.yaml");
    let text = fs::read_to_string(&input).unwrap();
    fs::write(input, text.replace("numNodes: 2", "nodes: 2")).unwrap();
    stdout(&trainyard(folder.path(), &["plugin", "check", "mine"]));
}

/// `plugin test` would write the errors to the file.
#[test]
fn errors_of_a_case_say_how_to_expect_them() {
    let folder = created_crate();
    let errors = errors_with(
        folder.path(),
        "cases/basic/input.yaml",
        "numNodes: 2\n    command",
        "nodes: 2\n    command",
    );
    let hint = "case basic: has no `expected.txt`; correct these errors, or run `trainyard plugin test --update`";
    assert!(errors.contains(hint), "{errors}");
}

#[test]
fn shipped_runtimes_need_not_be_in_a_case() {
    let folder = created_crate();
    let case = folder.path().join("mine/cases/shipped");
    fs::create_dir_all(&case).unwrap();
    let job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec: {runtimeRef: {name: torch-distributed}}\n";
    fs::write(case.join("input.yaml"), job).unwrap();
    let check = || trainyard(folder.path(), &["plugin", "check", "mine"]);
    assert!(stdout(&check()).ends_with("in 2 cases\n"));
    let wrong = job.replace("spec: {", "spec: {trainer: {nodes: 2}, ");
    fs::write(case.join("input.yaml"), wrong).unwrap();
    let errors = stderr(&check());
    assert!(
        errors.contains("case shipped: ") && errors.contains("nodes"),
        "{errors}"
    );
    // It is refused with this runtime on purpose.
    let expected = case.join("runtimes/torch-distributed");
    fs::create_dir_all(&expected).unwrap();
    fs::write(expected.join("expected.txt"), "error: ...\n").unwrap();
    stdout(&check());
}

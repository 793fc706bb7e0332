//! `plugin compile` compiles the built-in plugins and those of the operator into a directory, and commands with `--compiled-dir` compile
//! none of them again. The policy file bounds the compilation.

use std::{fs, path::Path};

use crate::common::{command, runtime, stderr, stdout, test_plugin};

/// Writes a TrainJob of the plugin `hostile`, and a policy file.
fn inputs(folder: &Path, policy: &str) {
    let own = runtime(
        "name: own",
        "plugins: [{name: hostile, config: {does: behave}}],",
        "",
    );
    let job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec: {runtimeRef: {name: own}}\n";
    fs::write(folder.join("input.yaml"), format!("{own}---\n{job}")).unwrap();
    let policy = format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: hostile, {policy}}}]\n"
    );
    fs::write(folder.join("policy.yaml"), policy).unwrap();
}

/// Runs a command with the plugin, the policy file and an empty cache. Returns its output and the number of plugins in the cache.
fn run(folder: &Path, args: &[&str]) -> (std::process::Output, usize) {
    let temporary = tempfile::tempdir().unwrap();
    let cache = temporary.path().join("cache");
    let output = command(args)
        .args(["--plugin", &test_plugin("hostile")])
        .args(["--policy", "policy.yaml"])
        .arg("--cache-dir")
        .arg(&cache)
        .env("XDG_STATE_HOME", temporary.path().join("state"))
        .current_dir(folder)
        .output()
        .unwrap();
    let entries = fs::read_dir(cache).into_iter().flatten();
    let compiled = entries.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|ending| ending == "cwasm")
    });
    (output, compiled.count())
}

#[test]
fn commands_compile_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    // What the plugin is granted can change after it was compiled.
    inputs(folder.path(), "disabled: true");
    let (output, _) = run(
        folder.path(),
        &["plugin", "compile", "--output", "compiled"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    for name in ["hostile", "torch", "dra"] {
        let line = format!("compiled plugin {name} ");
        assert!(printed.contains(&line), "{printed}");
    }

    inputs(folder.path(), "config: {}");
    let render = ["render", "-f", "input.yaml"];
    let (without, compiled) = run(folder.path(), &render);
    assert!(without.status.success(), "{}", stderr(&without));
    assert_eq!(compiled, 1);
    let (with, compiled) = run(
        folder.path(),
        &[&render[..], &["--compiled-dir", "compiled"]].concat(),
    );
    assert_eq!(stdout(&with), stdout(&without));
    assert_eq!(compiled, 0, "{}", stderr(&with));
}

#[test]
fn directory_that_cannot_be_used_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path(), "config: {}");
    let (output, _) = run(
        folder.path(),
        &["render", "-f", "input.yaml", "--compiled-dir", "missing"],
    );
    assert!(!output.status.success());
    let printed = stderr(&output);
    let expected = "missing: cannot be used as the directory of compiled plugins: No such file";
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn policy_file_bounds_the_compilation() {
    let folder = tempfile::tempdir().unwrap();
    inputs(
        folder.path(),
        "compile: {memoryBytes: 67108864, seconds: 0}",
    );
    let compile = ["plugin", "compile", "--output", "compiled"];
    let (output, _) = run(folder.path(), &compile);
    let printed = stderr(&output);
    assert!(
        printed.contains("plugins[0].compile.seconds: must be at least 1"),
        "{printed}"
    );
}

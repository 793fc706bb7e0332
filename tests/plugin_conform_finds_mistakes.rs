//! `trainyard plugin conform` passes a careful plugin, and finds the mistakes of a careless one.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};
use trainyard_cluster::with_manifest;

use crate::common::{root, runtime, stderr, stdout, test_plugin, trainyard};

const ENV: &str = "pod-sets[@nodes].containers[node].env[CARELESS]";

/// Writes the plugin careless with these claims of writes, and a case in which it makes the mistake.
fn write(folder: &Path, mistake: &str, writes: &[&str]) {
    let manifest = json!({
        "name": "careless", "version": "0.1.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
        // These write the name of the scheduler, too.
        "after": ["coscheduling", "volcano"],
        "claims": {"writes": writes},
        "configSchema": {"type": "object", "properties": {"mistake": {"type": "string", "default": "none"}}},
    });
    let component = fs::read(test_plugin("careless")).unwrap();
    let component = with_manifest(&component, &manifest.to_string()).unwrap();
    fs::write(folder.join("careless.wasm"), component).unwrap();
    let case = folder.join("cases/basic");
    fs::create_dir_all(&case).unwrap();
    let named = format!(
        "mlPolicy: {{numNodes: 2}}, plugins: [{{name: careless, config: {{mistake: {mistake}}}}}],"
    );
    let own = runtime("name: own", &named, "");
    let job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec: {runtimeRef: {name: own}}\n";
    fs::write(case.join("input.yaml"), format!("{own}---\n{job}")).unwrap();
}

/// Returns the report, and the checks that failed.
fn conform(folder: &Path) -> (Value, BTreeSet<String>) {
    let arguments = [
        "plugin",
        "conform",
        "careless.wasm",
        "--cases",
        "cases",
        "-o",
        "json",
    ];
    let policy: &[&str] = match folder.join("policy.yaml").exists() {
        true => &["--policy", "policy.yaml"],
        false => &[],
    };
    let output = trainyard(folder, &[&arguments, policy].concat());
    assert!(!output.stdout.is_empty(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let failed = checks.filter(|check| check["result"] == "failed");
    let failed: BTreeSet<_> = failed
        .map(|check| check["check"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        output.status.success(),
        failed.is_empty(),
        "{}",
        stderr(&output)
    );
    assert_eq!(report["passed"], failed.is_empty());
    (report, failed)
}

/// Returns the failures of a check.
fn failures(report: &Value, check: &str) -> String {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks.find(|one| one["check"] == check).unwrap()["failures"].to_string()
}

#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn each_mistake_is_found_by_its_check() {
    let trainer = "pod-sets[@trainer].containers[node].env[CARELESS]";
    let all = "pod-sets[*].containers[node].env[CARELESS]";
    let command = "pod-sets[@nodes].containers[node].env[CARELESS_COMMAND]";
    let table: [(&str, &[&str], &str, &str); 11] = [
        (
            "nodes",
            &[trainer],
            "nodes",
            "the pods of `node` are nodes, but it wrote to other pods only",
        ),
        (
            "first-node",
            &[all],
            "nodes",
            "the pods of `launcher` are nodes, but it wrote to other pods only",
        ),
        (
            "waiting-nodes",
            &[ENV],
            "nodes",
            "with pods that have to be ready first: it no longer writes to the pods of `node`",
        ),
        (
            "env",
            &[ENV],
            "env",
            "the user sets the env var CARELESS, and the host ends a call",
        ),
        ("many-nodes", &[ENV], "scenarios", "with 1,000 nodes"),
        (
            "host-names",
            &[ENV],
            "scenarios",
            "without DNS names of pods",
        ),
        (
            "in-order",
            &[ENV],
            "scenarios",
            "with pods that have to be ready first",
        ),
        ("warning", &[ENV], "warnings", "something is wrong"),
        (
            "limits",
            &[ENV],
            "limits",
            "of `limits.logLines`, which is 256",
        ),
        (
            "order",
            &[ENV, command],
            "runtimes",
            "because no claim allows it",
        ),
        (
            "none",
            &[ENV, command],
            "claims",
            "no call used `pod-sets[@nodes].containers[node].env[CARELESS_COMMAND]`",
        ),
    ];
    let table = table.map(|(mistake, writes, check, expected)| {
        wrong_findings(mistake, writes, &[(check, expected)])
    });
    let wrong = table.concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the checks that do not find a mistake as expected.
fn wrong_findings(mistake: &str, writes: &[&str], wanted: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), mistake, writes);
    let (report, failed) = conform(folder.path());
    let is_wrong = |(check, expected): &&(&str, &str)| {
        !failed.contains(*check) || !failures(&report, check).contains(expected)
    };
    let wrong = wanted.iter().filter(is_wrong);
    let wrong = wrong.map(|(check, _)| {
        let found = failures(&report, check);
        format!("{mistake}: failed {failed:?}, {check}: {found}")
    });
    wrong.collect()
}

/// Without a policy file, the plugin may replace volumes of others.
#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn a_volume_that_the_plugin_must_not_replace_is_found() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "volume",
        &[ENV, "pod-sets[@nodes].volumes[careless]"],
    );
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n";
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let (report, failed) = conform(folder.path());
    assert_eq!(failed, BTreeSet::from(["mounts".to_owned()]), "{report}");
    let found = failures(&report, "mounts");
    let wanted = "the user sets the volume careless, and the host ends a call";
    assert!(found.contains(wanted), "{found}");
}

#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn each_value_of_users_that_is_replaced_is_found() {
    let writes = [
        "volumes[careless]",
        "pod-labels[example.com/careless]",
        "pod-annotations[example.com/careless]",
        "scheduler-name",
        "containers[node].env[CARELESS]",
        "containers[node].limits[example.com/careless]",
        "containers[node].requests[memory]",
    ];
    let writes = writes.map(|field| format!("pod-sets[@nodes].{field}"));
    let wanted = [
        (
            "mounts",
            "the user's value of the volume careless is replaced",
        ),
        (
            "labels",
            "the user's value of the label example.com/careless is replaced",
        ),
        (
            "annotations",
            "the user's value of the annotation example.com/careless is replaced",
        ),
        (
            "scheduler",
            "the user's value of the field schedulerName is replaced",
        ),
        (
            "resources",
            "the user's value of the limit example.com/careless is replaced",
        ),
        (
            "resources",
            "the user's value of the request memory is replaced",
        ),
    ];
    let wrong = wrong_findings("overwrite", &writes.each_ref().map(|one| &**one), &wanted);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_careful_plugin_passes() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "none", &[ENV]);
    let (report, failed) = conform(folder.path());
    assert!(failed.is_empty(), "{report}");
    assert!(report["renderings"].as_u64().unwrap() > 100, "{report}");
    let shipped = &report["shippedRuntimes"];
    assert!(shipped["rendered"].as_u64().unwrap() > 5, "{report}");
    let skipped = shipped["skipped"].as_array().unwrap().len() as u64;
    let all = shipped["rendered"].as_u64().unwrap() + skipped;
    assert_eq!(shipped["all"], all, "{report}");
    let arguments = [
        "plugin",
        "conform",
        "careless.wasm",
        "--cases",
        "cases",
        "-o",
    ];
    for format in ["table", "markdown"] {
        let output = trainyard(folder.path(), &[&arguments[..], &[format]].concat());
        let printed = String::from_utf8(output.stdout).unwrap();
        for check in report["checks"].as_array().unwrap() {
            assert!(
                printed.contains(check["check"].as_str().unwrap()),
                "{printed}"
            );
        }
        assert_eq!(
            format == "markdown",
            printed.contains("\n|---|---|---|---|\n"),
            "{printed}"
        );
    }
}

/// Each shipped runtime has a framework, and a runtime has at most one.
#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn shipped_runtimes_that_cannot_activate_the_plugin_are_not_tried() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "none", &[ENV]);
    let component = fs::read(test_plugin("careless")).unwrap();
    let manifest = json!({
        "name": "careless", "version": "0.1.0", "contract": "1.0.0", "activeWhen": "mlPolicy.plugin", "phases": ["transform"],
        "claims": {"writes": [ENV]},
        "configSchema": {"type": "object", "properties": {"mistake": {"type": "string", "default": "none"}}},
    });
    let component = with_manifest(&component, &manifest.to_string()).unwrap();
    fs::write(folder.path().join("careless.wasm"), component).unwrap();
    let input = folder.path().join("cases/basic/input.yaml");
    let text = fs::read_to_string(&input).unwrap();
    let named = "mlPolicy: {numNodes: 2, plugin: {name: careless}},";
    let plugins = "mlPolicy: {numNodes: 2}, plugins: [{name: careless, config: {mistake: none}}],";
    assert!(text.contains(plugins), "{text}");
    fs::write(&input, text.replace(plugins, named)).unwrap();
    let (report, failed) = conform(folder.path());
    assert!(failed.is_empty(), "{report}");
    let shipped = &report["shippedRuntimes"];
    assert_eq!(shipped["rendered"], 0, "{report}");
    let skipped = shipped["skipped"].as_array().unwrap();
    assert_eq!(shipped["all"], skipped.len(), "{report}");
    let mut checks = report["checks"].as_array().unwrap().iter();
    let runtimes = checks.find(|one| one["check"] == "runtimes").unwrap();
    assert_eq!(runtimes["result"], "notTried", "{report}");
    let arguments = [
        "plugin",
        "conform",
        "careless.wasm",
        "--cases",
        "cases",
        "-o",
    ];
    for format in ["table", "markdown"] {
        let output = trainyard(folder.path(), &[&arguments[..], &[format]].concat());
        let printed = String::from_utf8(output.stdout).unwrap();
        for wanted in ["not tried", "with 0 of ", "a runtime has at most one"] {
            assert!(printed.contains(wanted), "{printed}");
        }
    }
}

#[test]
fn a_plugin_that_no_case_calls_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "none", &[ENV]);
    let input = folder.path().join("cases/basic/input.yaml");
    let text = fs::read_to_string(&input).unwrap();
    // Another controller renders it.
    let text = text.replace(
        "spec: {runtimeRef",
        "spec: {managedBy: kueue.x-k8s.io/multikueue, runtimeRef",
    );
    fs::write(&input, text).unwrap();
    let output = trainyard(
        folder.path(),
        &["plugin", "conform", "careless.wasm", "--cases", "cases"],
    );
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(error.contains("no case called the plugin"), "{error}");
}

/// The plugin in a directory is built there and in a copy.
#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn a_file_that_depends_on_its_directory_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::create_dir(&own).unwrap();
    write(&own, "none", &[ENV]);
    write(
        &other,
        "none",
        &["pod-sets[@nodes].containers[node].env[CARELESS*]"],
    );
    fs::rename(
        own.join("careless.wasm"),
        folder.path().join("careless.wasm"),
    )
    .unwrap();
    fs::copy(
        root().join("tests/plugins/careless/manifest.json"),
        own.join("manifest.json"),
    )
    .unwrap();
    let manifest = fs::read_to_string(own.join("manifest.json")).unwrap();
    let manifest = manifest.replacen('{', r#"{"version": "0.1.0","#, 1);
    fs::write(own.join("manifest.json"), manifest).unwrap();
    let script = |copy: &str| {
        let (here, script) = (own.canonicalize().unwrap(), own.join("build.sh"));
        let (here, built) = (here.display(), folder.path().join("careless.wasm"));
        let text = format!(
            "#!/bin/sh\nif [ \"$PWD\" = '{here}' ]; then cp '{}' careless.wasm; else {copy}; fi\n",
            built.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let rebuild = || {
        let output = trainyard(folder.path(), &["plugin", "conform", "own", "-o", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| unreachable!("{error}: {}", stderr(&output)));
        let mut checks = report["checks"].as_array().unwrap().iter();
        let rebuild = checks.find(|check| check["check"] == "rebuild").unwrap();
        (rebuild["result"].clone(), rebuild["failures"].to_string())
    };
    script(&format!(
        "cp '{}' careless.wasm",
        folder.path().join("careless.wasm").display()
    ));
    assert_eq!(rebuild().0, "passed");
    script(&format!(
        "cp '{}' careless.wasm",
        other.join("careless.wasm").display()
    ));
    let (result, failures) = rebuild();
    assert!(
        result == "failed" && failures.contains("built in another directory"),
        "{failures}"
    );
    script("exit 1");
    let (result, failures) = rebuild();
    assert!(
        result == "failed" && failures.contains("a copy cannot be built"),
        "{failures}"
    );
    // A tool of another language may give other bytes each time.
    let allowed = ["plugin", "conform", "own", "--allow", "rebuild,paths"];
    let output = trainyard(folder.path(), &[&allowed[..], &["-o", "markdown"]].concat());
    let printed = stdout(&output);
    assert!(output.status.success(), "{printed}{}", stderr(&output));
    let (row, reason) = ("| rebuild | failed (allowed) |", "- a copy cannot be built");
    assert!(
        printed.contains(row) && printed.contains(reason),
        "{printed}"
    );
}

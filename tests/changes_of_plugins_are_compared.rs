//! `plan --against` and `plan --against-policy` report what another version of a plugin or another policy file changes, for plugins, the
//! order, TrainJobs and runtimes. `plugin diff` reports what a version declares differently.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use crate::common::{
    declared_plugin::{claims, plugin, plugin_of, policy},
    expect, runtime, stderr, trainyard,
};

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    trainyard(folder, &[&["plan"], arguments].concat())
}

fn against(folder: &Path, file: &str, policy: &str) -> (Option<i32>, Value, String) {
    self::policy(folder, policy);
    let arguments = [
        "--plugin-dir",
        "loaded",
        "--policy",
        "policy.yaml",
        "--against",
        file,
    ];
    let json = plan(folder, &[&arguments[..], &["-o", "json"]].concat());
    let table = plan(folder, &arguments);
    assert_eq!(json.status, table.status);
    let table = String::from_utf8(table.stdout).unwrap();
    let report = serde_json::from_slice(&json.stdout).unwrap_or(Value::Null);
    assert_eq!(
        json.status.success(),
        report["accepted"] == true,
        "{}",
        stderr(&json)
    );
    (json.status.code(), report, table)
}

fn folder_with_loaded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let loaded = folder.path().join("loaded");
    fs::create_dir(&loaded).unwrap();
    plugin(&loaded, "site", claims(&["labels[a]"], &["labels[b]"]));
    folder
}

#[test]
fn additional_plugin_is_checked_against_the_loaded_ones() {
    let folder = folder_with_loaded();
    plugin(
        folder.path(),
        "new",
        claims(&["labels[b]"], &["annotations[x]"]),
    );
    let (code, report, table) = against(folder.path(), "new.wasm", "[]");
    assert_eq!(code, Some(0), "{table}");
    assert_eq!(report["problems"], json!([]));
    let [added] = &report["plugins"].as_array().unwrap()[..] else {
        unreachable!("{report}")
    };
    assert_eq!(
        (&added["now"], &added["then"]["name"]),
        (&Value::Null, &json!("new"))
    );
    let orders = report["orders"].as_object().unwrap().iter();
    let orders = orders.flat_map(|(when, orders)| {
        let orders = orders.as_array().unwrap().iter();
        orders.map(move |order| format!("{when}: {order}\n"))
    });
    expect("orders.txt", &orders.collect::<String>());
    assert!(table.contains("order then: "), "{table}");
    assert_ne!(report["digest"]["now"], report["digest"]["then"]);
    let edges = report["because"]["added"].as_array().unwrap();
    assert!(!edges.is_empty() && report["because"]["removed"] == json!([]));
}

#[test]
fn refused_plugin_is_reported_with_every_reason() {
    let folder = folder_with_loaded();
    // A conflict, a cycle, and two claims that are not granted.
    let writes = [
        "labels[a]",
        "labels[b]",
        "pod-sets[*].priority-class",
        "pod-sets[*].containers[*].image",
    ];
    plugin(folder.path(), "new", claims(&["labels[b]"], &writes));
    let (code, report, table) = against(folder.path(), "new.wasm", "[]");
    assert_eq!(code, Some(1));
    let problems = report["problems"].as_array().unwrap();
    let of = |kind: &str| {
        let of_kind = problems.iter().filter(|problem| problem["kind"] == *kind);
        of_kind.cloned().collect::<Vec<_>>()
    };
    let granted: Vec<_> = of("grant").iter().map(|one| one["path"].clone()).collect();
    assert_eq!(granted, [writes[2], writes[3]]);
    let [conflict] = &of("conflict")[..] else {
        unreachable!("{problems:?}")
    };
    assert_eq!(
        (&conflict["first"], &conflict["second"]),
        (&json!("new"), &json!("site"))
    );
    let path = json!({"place": "labels[b]", "firstClaim": "labels[b]", "secondClaim": "labels[b]"});
    assert_eq!(conflict["paths"], json!([path]));
    assert_eq!(of("cycle")[0]["plugins"], json!(["new", "site"]));
    assert_eq!(report["digest"]["then"], Value::Null);
    assert!(
        table.contains("order then: none, because of the cycle"),
        "{table}"
    );
    for problem in problems {
        assert!(
            table.contains(problem["message"].as_str().unwrap()),
            "{table}"
        );
    }
    // Each remedy works, and with all of them the plugin is accepted.
    let grants = "grants: ['pod-sets[*].priority-class', 'pod-sets[*].containers[*].image']";
    let (code, report, _) = against(
        folder.path(),
        "new.wasm",
        &format!("[{{name: new, {grants}, after: [site]}}]"),
    );
    assert_eq!(code, Some(1), "the cycle stays: {report}");
    let (code, report, _) = against(
        folder.path(),
        "new.wasm",
        &format!("[{{name: new, {grants}, excludes: [site]}}]"),
    );
    assert_eq!((code, &report["problems"]), (Some(0), &json!([])));
    let (code, ..) = against(
        folder.path(),
        "new.wasm",
        &format!("[{{name: new, {grants}}}, {{name: site, disabled: true}}]"),
    );
    assert_eq!(code, Some(0));
}

#[test]
fn other_version_is_compared_with_the_loaded_one() {
    let folder = folder_with_loaded();
    let mut next = claims(&["labels[a]"], &["labels[c]"]);
    next["version"] = json!("2.0.0");
    plugin(folder.path(), "site", next);
    let (code, report, table) = against(folder.path(), "site.wasm", "[]");
    assert_eq!(code, Some(0), "{table}");
    let [changed] = &report["plugins"].as_array().unwrap()[..] else {
        unreachable!("{report}")
    };
    assert_eq!(
        (&changed["now"]["version"], &changed["then"]["version"]),
        (&json!("1.0.0"), &json!("2.0.0"))
    );
    assert!(
        table.contains("  + writes `labels[c]`\n  - writes `labels[b]`\n"),
        "{table}"
    );
    // It is refused if the operator has pinned another digest.
    let digest = format!("sha256:{}", "0".repeat(64));
    let (code, report, _) = against(
        folder.path(),
        "site.wasm",
        &format!("[{{name: site, digest: '{digest}', disabled: false}}]"),
    );
    assert_eq!(
        (code, report),
        (Some(1), Value::Null),
        "the loaded one is refused too"
    );
}

#[test]
fn file_that_is_not_a_plugin_is_an_error() {
    let folder = folder_with_loaded();
    fs::write(folder.path().join("text.wasm"), "no plugin").unwrap();
    let output = plan(folder.path(), &["--against", "text.wasm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stdout.is_empty() && stderr(&output).starts_with("error: text.wasm: "),
        "{}",
        stderr(&output)
    );
}

/// Writes a version of a plugin with coscheduling's code, which a runtime's `podGroupPolicy` names.
fn gangs(folder: &Path, version: &str, properties: &Value, more: &[&str]) {
    let coscheduling = fs::read(concat!(env!("OUT_DIR"), "/coscheduling.wasm")).unwrap();
    let mut writes = vec![
        "pod-sets[*].pod-labels[scheduling.x-k8s.io/pod-group]",
        "pod-sets[*].scheduler-name",
        "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]",
    ];
    writes.extend(more);
    let reads = [
        "lookups[v1/LimitRange/*]",
        "lookups[node.k8s.io/v1/RuntimeClass/*]",
    ];
    let mut manifest = claims(&reads, &writes);
    manifest["activeWhen"] = json!("podGroupPolicy.plugin");
    manifest["version"] = json!(version);
    manifest["phases"] = json!(["transform", "build"]);
    manifest["configSchema"] =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    plugin_of(&coscheduling, folder, "gangs", manifest);
}

const GRANTS: &str = "grants: ['lookups[v1/LimitRange/*]', 'lookups[node.k8s.io/v1/RuntimeClass/*]', 'pod-sets[*].pod-labels[scheduling.x-k8s.io/pod-group]', 'pod-sets[*].scheduler-name', 'objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]']";

/// Creates a folder with the version 1.0.0 of gangs, and with a TrainJob and runtimes that name it.
fn folder_with_gangs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let loaded = folder.path().join("loaded");
    fs::create_dir(&loaded).unwrap();
    let timeout = json!({"scheduleTimeoutSeconds": {"type": "integer", "default": 60}});
    gangs(&loaded, "1.0.0", &timeout, &[]);
    let named = |config: &str| {
        format!("mlPolicy: {{torch: {{}}}}, podGroupPolicy: {{plugin: {{name: gangs{config}}}}},")
    };
    let job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec: {runtimeRef: {name: by-default}}\n";
    let objects = [
        runtime("name: by-default", &named(""), ""),
        runtime(
            "name: slow",
            &named(", config: {scheduleTimeoutSeconds: 300}"),
            "",
        ),
        runtime("name: other", "mlPolicy: {torch: {}},", ""),
        job.to_owned(),
    ];
    fs::write(folder.path().join("input.yaml"), objects.join("---\n")).unwrap();
    policy(folder.path(), &format!("[{{name: gangs, {GRANTS}}}]"));
    folder
}

/// Compares the folder's input now with that after a change.
fn compared(folder: &Path, change: &[&str]) -> (Option<i32>, Value, String) {
    let arguments = [
        "--plugin-dir",
        "loaded",
        "--policy",
        "policy.yaml",
        "-f",
        "input.yaml",
    ];
    let arguments = [&arguments[..], change].concat();
    let json = plan(folder, &[&arguments[..], &["-o", "json"]].concat());
    let table = plan(folder, &arguments);
    assert_eq!(json.status, table.status);
    let report = serde_json::from_slice(&json.stdout).unwrap_or(Value::Null);
    let table = stderr(&table) + &String::from_utf8(table.stdout).unwrap();
    (json.status.code(), report, table)
}

#[test]
fn train_jobs_and_runtimes_are_rendered_with_both_versions() {
    let folder = folder_with_gangs();
    let longer = json!({"scheduleTimeoutSeconds": {"type": "integer", "default": 90}});
    gangs(folder.path(), "1.1.0", &longer, &[]);
    let (code, report, table) = compared(folder.path(), &["--against", "gangs.wasm"]);
    assert_eq!(code, Some(0), "{table}");
    let jobs = report["trainJobs"].as_array().unwrap();
    let outcomes: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job["name"].as_str().unwrap(),
                job["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            ("TrainJob default/bert", "differs"),
            ("ClusterTrainingRuntime slow", "same"),
            ("ClusterTrainingRuntime other", "same"),
        ]
    );
    let [field] = &jobs[0]["fields"].as_array().unwrap()[..] else {
        unreachable!("{report}")
    };
    assert_eq!(field["object"], "PodGroup bert");
    assert_eq!((&field["now"], &field["then"]), (&json!(60), &json!(90)));
    assert_eq!(field["setBy"], "gangs 1.1.0");
    assert!(
        table.contains("~ configuration `scheduleTimeoutSeconds`: `default` is 90 instead of 60\n"),
        "{table}"
    );
    assert!(
        table.contains(
            "2 of 3 TrainJobs and runtimes would render the same\n  TrainJob default/bert would change:\n"
        ),
        "{table}"
    );
}

#[test]
fn all_that_a_version_breaks_is_reported_in_one_run() {
    let folder = folder_with_gangs();
    // It drops the key of the configuration, writes something else, and keeps its version.
    gangs(
        folder.path(),
        "1.0.0",
        &json!({}),
        &["pod-sets[*].priority-class"],
    );
    let (code, report, table) = compared(folder.path(), &["--against", "gangs.wasm"]);
    assert_eq!(code, Some(1));
    assert!(!table.contains("setting: "), "{table}");
    for line in [
        "  + writes `pod-sets[*].priority-class` (breaks PolicyPlugins)\n",
        "  - configuration `scheduleTimeoutSeconds` (breaks runtimes)\n",
        "  version: the component differs, but its version is still 1.0.0; raise the version in its manifest or Cargo.toml\n",
        "  plugin gangs: claims to write `pod-sets[*].priority-class`, which is not granted;",
        "  ClusterTrainingRuntime slow would be refused:\n",
        "the change breaks 2 TrainJobs and runtimes of the input;",
    ] {
        assert!(table.contains(line), "{line:?} is not in {table}");
    }
    assert_eq!(report["accepted"], json!(false));
    let refused = report["trainJobs"].as_array().unwrap().iter();
    let refused: Vec<_> = refused.filter(|job| job["outcome"] == "refused").collect();
    assert!(
        refused[1]["errors"][0]
            .as_str()
            .unwrap()
            .contains("scheduleTimeoutSeconds"),
        "{refused:?}"
    );
}

#[test]
fn another_policy_file_is_compared_as_well() {
    let folder = folder_with_gangs();
    let write = |name: &str, plugins: &str| {
        policy(folder.path(), plugins);
        let path = folder.path().join(name);
        fs::rename(folder.path().join("policy.yaml"), path).unwrap();
    };
    write("fewer.yaml", "[{name: gangs}]");
    write("disabled.yaml", "[{name: gangs, disabled: true}]");
    write(
        "limits.yaml",
        &format!("[{{name: gangs, {GRANTS}, limits: {{objects: 0}}}}]"),
    );
    write("policy.yaml", &format!("[{{name: gangs, {GRANTS}}}]"));
    let (code, report, table) = compared(folder.path(), &["--against-policy", "policy.yaml"]);
    assert_eq!((code, &report["plugins"]), (Some(0), &json!([])), "{table}");
    assert!(
        table.starts_with("no plugin would change\nwould be accepted\n"),
        "{table}"
    );

    let (code, report, table) = compared(folder.path(), &["--against-policy", "fewer.yaml"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        report["plugins"][0]["settings"]["removed"]
            .as_array()
            .unwrap()
            .len(),
        5,
        "{table}"
    );
    assert!(
        table.contains("  - setting: grant `pod-sets[*].scheduler-name`\n"),
        "{table}"
    );

    let (code, report, table) = compared(folder.path(), &["--against-policy", "disabled.yaml"]);
    assert_eq!(code, Some(1), "{table}");
    assert_eq!(report["plugins"][0].get("then"), None);
    assert!(table.contains("gangs 1.0.0 ("), "{table}");
    let refused = report["trainJobs"].as_array().unwrap().iter();
    let refused: Vec<_> = refused.filter(|job| job["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 2, "{table}");

    let (code, _, table) = compared(folder.path(), &["--against-policy", "limits.yaml"]);
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains("  + setting: limit objects 0\n"), "{table}");
    assert!(
        table.contains("  TrainJob default/bert would be refused:\n"),
        "{table}"
    );
}

#[test]
fn diff_lists_changes_and_checks_the_version() {
    let folder = folder_with_gangs();
    let diff = |properties: Value, version: &str| {
        gangs(folder.path(), version, &properties, &[]);
        let output = trainyard(
            folder.path(),
            &["plugin", "diff", "loaded/gangs.wasm", "gangs.wasm"],
        );
        let error = stderr(&output);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            error,
        )
    };
    let integer = json!({"type": "integer", "default": 60});
    let (code, shown, _) = diff(
        json!({"scheduleTimeoutSeconds": integer, "queue": {"type": "string"}}),
        "1.1.0",
    );
    assert_eq!(
        (code, shown.as_str()),
        (
            Some(0),
            "plugin gangs: 1.0.0 to 1.1.0\n+ configuration `queue`\n"
        )
    );
    let (code, shown, error) = diff(json!({}), "1.1.0");
    assert_eq!(code, Some(1));
    assert_eq!(
        shown,
        "plugin gangs: 1.0.0 to 1.1.0\n- configuration `scheduleTimeoutSeconds` (breaks runtimes)\n"
    );
    assert_eq!(
        error,
        "error: gangs.wasm: the changes break others, so the version must be at least 2.0.0, but it is 1.1.0; raise it, or revert the changes\n"
    );
    let (code, shown, _) = diff(json!({"scheduleTimeoutSeconds": integer}), "1.0.0");
    assert_eq!(
        (code, shown.lines().nth(1)),
        (Some(0), Some("the two files are the same component"))
    );

    plugin(folder.path(), "other", json!({}));
    let output = trainyard(
        folder.path(),
        &["plugin", "diff", "gangs.wasm", "other.wasm"],
    );
    assert!(output.stdout.is_empty());
    assert_eq!(
        stderr(&output),
        "error: other.wasm: is the plugin other, but gangs.wasm is the plugin gangs; pass two versions of one plugin\n"
    );
}

/// The TrainJob of a runtime can be refused for another reason, so the runtime is checked by itself.
#[test]
fn runtimes_of_refused_train_jobs_are_compared() {
    let folder = folder_with_gangs();
    let input = folder.path().join("input.yaml");
    let text = fs::read_to_string(&input).unwrap();
    let bad = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bad}\nspec: {runtimeRef: {name: slow}, runtimePatches: [{manager: example.com/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: nope}]}}}}]}\n";
    fs::write(&input, format!("{text}---\n{bad}")).unwrap();
    gangs(folder.path(), "2.0.0", &json!({}), &[]);
    let (code, _, table) = compared(folder.path(), &["--against", "gangs.wasm"]);
    assert_eq!(code, Some(1), "{table}");
    for line in [
        "TrainJob default/bad is refused now, and would still be",
        "ClusterTrainingRuntime slow would be refused:",
    ] {
        assert!(table.contains(line), "{line} is not in {table}");
    }
}

/// A controller refuses a file with the name of a built-in plugin, and does not load one that is disabled.
#[test]
fn files_that_would_not_be_loaded_are_refused() {
    let folder = folder_with_gangs();
    plugin(folder.path(), "torch", json!({}));
    let (code, _, table) = compared(folder.path(), &["--against", "torch.wasm"]);
    assert_eq!(code, Some(1));
    assert!(
        table.contains("plugin torch: has the name of a built-in plugin"),
        "{table}"
    );
    plugin(folder.path(), "other", json!({}));
    policy(
        folder.path(),
        &format!("[{{name: gangs, {GRANTS}}}, {{name: other, disabled: true}}]"),
    );
    let (code, _, table) = compared(folder.path(), &["--against", "other.wasm"]);
    assert_eq!(code, Some(1));
    assert!(
        table.contains("the plugin `other` is disabled in its PolicyPlugin"),
        "{table}"
    );
}

//! A plugin that is always active can be disabled for TrainJobs, and a TrainJob can set parameters of plugins. `plan`, `explain`, `inspect` and
//! bundles show both.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::common::{
    bundle::{changed, replay},
    policy_file::{refused_with, run},
    runtime, stderr, stdout, test_plugin, trainyard,
};

/// Returns the path of the plugin `team` of tests/plugins as one that is always active. It labels each JobSet.
fn always_team(folder: &Path) -> String {
    let component = fs::read(test_plugin("team")).unwrap();
    // The same length, so that no other byte of the component changes.
    let (named, always) = (br#""activeWhen":"plugins""#, br#""activeWhen":"always" "#);
    let place = component.windows(named.len()).rposition(|it| it == named);
    let (before, rest) = component.split_at(place.unwrap());
    let always = [before, always, &rest[named.len()..]].concat();
    let file = folder.join("team.wasm");
    fs::write(&file, always).unwrap();
    file.to_str().unwrap().to_owned()
}

const LABEL: &str = "example.com/team: ml";

/// Returns a TrainJob in the namespace `ml` with this annotation.
fn job(annotation: &str) -> String {
    let job = format!(
        "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: job, namespace: ml, annotations: {{{annotation}}}}}
spec: {{runtimeRef: {{name: runtime}}}}
"
    );
    runtime("name: runtime", "mlPolicy: {numNodes: 2},", "") + &job
}

const DISABLES: &str = "trainyard.dev/disabled-plugins: team";

/// Returns a policy file with these settings of `team`.
fn policy(of_team: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: team, {of_team}}}]"
    )
}

const BY_TRAIN_JOBS: &str = "trainJobsMayDisable: true";

#[test]
fn policy_file_and_train_job_decide_whether_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let team = always_team(folder.path());
    let by_job = "annotation trainyard.dev/disabled-plugins of the TrainJob";
    for (of_team, annotation, by) in [
        ("limits: {}", "", None),
        ("disabledFor: {}, trainJobsMayDisable: false", "", None),
        (
            "disabledFor: {namespaces: [ml]}",
            "",
            Some("PolicyPlugin, for namespace ml"),
        ),
        ("disabledFor: {namespaces: [default]}", "", None),
        (
            "disabledFor: {runtimes: [ClusterTrainingRuntime/runtime]}",
            "",
            Some("PolicyPlugin, for ClusterTrainingRuntime/runtime"),
        ),
        (
            "disabledFor: {runtimes: [TrainingRuntime/ml/runtime]}",
            "",
            None,
        ),
        (BY_TRAIN_JOBS, "", None),
        (BY_TRAIN_JOBS, DISABLES, Some(by_job)),
    ] {
        let printed = |command: &[&str]| {
            let arguments = [command, &["--plugin", &team]].concat();
            stdout(&run(&arguments, policy(of_team), &job(annotation)))
        };
        assert_eq!(printed(&["render"]).contains(LABEL), by.is_none());
        let json: Value = serde_json::from_str(&printed(&["plan", "-o", "json"])).unwrap();
        let plan = json.pointer("/0").unwrap_or(&json);
        let explained: Value = serde_json::from_str(&printed(&["explain", "-o", "json"])).unwrap();
        let explained = explained.pointer("/0").unwrap_or(&explained);
        let wanted = by.map_or(Value::Null, |by| json!([{"name": "team", "by": by}]));
        assert_eq!(plan["disabledForTrainJob"], wanted);
        assert_eq!(explained["disabledPlugins"], wanted);
        let Some(by) = by else { continue };
        assert_eq!(plan["plugins"], json!([]));
        let line = format!("\ndisabled: team ({by})\n");
        assert!(printed(&["plan"]).contains(&line));
        let line = format!("\ndisabled plugin: team ({by})\n");
        assert!(printed(&["explain"]).contains(&line));
        assert!(printed(&["explain", "-o", "wide"]).contains(&line));
        let html = printed(&["plan", "-o", "html"]);
        assert!(html.contains(" is disabled for this TrainJob ("), "{html}");
    }
}

#[test]
fn plan_of_all_plugins_lists_for_which_train_jobs_it_is_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let team = always_team(folder.path());
    let all = "disabledFor: {namespaces: [b, a], runtimes: [ClusterTrainingRuntime/c, TrainingRuntime/a/d]}, trainJobsMayDisable: true";
    let plan = |of_team: &str, more: &[&str]| {
        fs::write(folder.path().join("policy.yaml"), policy(of_team)).unwrap();
        let arguments = ["plan", "--plugin", &team, "--policy", "policy.yaml"];
        stdout(&trainyard(folder.path(), &[&arguments, more].concat()))
    };
    let table = plan(all, &[]);
    let line = "\ndisabled for some: team (namespace a, namespace b, ClusterTrainingRuntime/c, TrainingRuntime/a/d, TrainJobs with trainyard.dev/disabled-plugins; PolicyPlugin)\n";
    assert!(table.contains(line), "{table}");
    let json: Value = serde_json::from_str(&plan(all, &["-o", "json"])).unwrap();
    let json = json.pointer("/0").unwrap_or(&json);
    let wanted = json!([{
        "name": "team", "trainJobsMayDisable": true,
        "disabledFor": {"namespaces": ["a", "b"], "runtimes": ["ClusterTrainingRuntime/c", "TrainingRuntime/a/d"]},
    }]);
    assert_eq!(json["disabledForSome"], wanted);
    let without = plan("limits: {}", &["-o", "json"]);
    let without: Value = serde_json::from_str(&without).unwrap();
    let without = without.pointer("/0").unwrap_or(&without);
    assert_eq!(without["disabledForSome"], Value::Null);
    // Two controllers with one digest run the same plugins.
    assert_ne!(without["digest"], json["digest"]);
}

#[test]
fn train_job_is_refused_with_what_the_operator_can_do() {
    let folder = tempfile::tempdir().unwrap();
    let team = always_team(folder.path());
    let refused = |of_team: &str, annotation: &str| {
        let arguments = ["render", "--plugin", &team];
        refused_with(&arguments, policy(of_team), &job(annotation))
    };
    let place = "error: input.yaml:8: TrainJob ml/job: metadata.annotations[trainyard.dev/disabled-plugins]: ";
    for (of_team, annotation, wanted) in [
        (
            "limits: {}",
            DISABLES,
            "the operator does not allow TrainJobs to disable the plugin `team`; remove it, or ask the operator to set `trainJobsMayDisable` for it in its PolicyPlugin",
        ),
        (
            BY_TRAIN_JOBS,
            "trainyard.dev/disabled-plugins: torch",
            "the plugin `torch` cannot be disabled, because it is not always active, but activated by `mlPolicy.torch`; remove it, or use a runtime that does not activate the plugin",
        ),
        (
            BY_TRAIN_JOBS,
            "trainyard.dev/disabled-plugins: teams",
            "no loaded plugin has the name `teams`; did you mean `team`?; loaded: team (always); use `--plugin FILE.wasm` to load one that is not built in",
        ),
    ] {
        let error = refused(of_team, annotation);
        let wanted = format!("{place}{wanted}\n");
        assert!(error.contains(&wanted), "{error}\n{wanted}");
    }
    // What the operator disables for all TrainJobs, each may name.
    let arguments = ["render", "--plugin", &team];
    run(&arguments, policy("disabled: true"), &job(DISABLES));
}

#[test]
fn inspect_prints_the_settings_of_a_plugin_that_is_always_active() {
    let folder = tempfile::tempdir().unwrap();
    let inspect = |plugin: &str| {
        let arguments = ["plugin", "inspect", plugin, "--policy"];
        stdout(&trainyard(folder.path(), &arguments))
    };
    let team = always_team(folder.path());
    let printed = inspect(&team);
    assert!(printed.contains("  # disabledFor: {namespaces: [], runtimes: []} #"));
    assert!(printed.contains("  # trainJobsMayDisable: true #"));
    assert!(!inspect(&test_plugin("team")).contains("isable"));
    // Without the comment signs, it is a valid policy file.
    let set = printed
        .replace("  # disabledFor", "  disabledFor")
        .replace("  # trainJobs", "  trainJobs");
    let render = ["render", "--plugin", &team];
    let printed = stdout(&run(&render, set, &job(DISABLES)));
    assert!(!printed.contains(LABEL), "{printed}");
}

#[test]
fn bundle_replays_without_a_disabled_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let team = always_team(folder.path());
    fs::write(folder.path().join("input.yaml"), job(DISABLES)).unwrap();
    fs::write(folder.path().join("policy.yaml"), policy(BY_TRAIN_JOBS)).unwrap();
    let arguments = [
        "--policy",
        "policy.yaml",
        "--plugin",
        &team,
        "-f",
        "input.yaml",
    ];
    let record = [&["render", "--record", "bundle.tar"][..], &arguments].concat();
    stdout(&trainyard(folder.path(), &record));
    let same = stdout(&replay(folder.path(), &[]));
    assert!(same.starts_with("bundle.tar: the same, "), "{same}");
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    let without = changed(&bundle, "bundle.json", |index| {
        let plugin = index["plugins"][0].as_object_mut().unwrap();
        plugin.remove("exemptions").unwrap();
    });
    fs::write(folder.path().join("bundle.tar"), without).unwrap();
    let error = stderr(&replay(folder.path(), &[]));
    assert!(
        error.contains("does not allow TrainJobs to disable the plugin `team`"),
        "{error}"
    );
}

/// Returns a TrainJob with these values, on a runtime that lists these parameters of the plugin `shared-memory`.
fn sized(values: &str, parameters: &str) -> String {
    let values = json!({"trainyard.dev/plugin-parameters": values}).to_string();
    let plugins = format!(
        "plugins: [{{name: shared-memory, config: {{size: 1Gi}}, parameters: [{parameters}]}}],"
    );
    job(values.trim_matches(['{', '}'])).replace("mlPolicy: {numNodes: 2},", &plugins)
}

#[test]
fn train_job_sets_parameters_that_its_runtime_lists() {
    let plugin = test_plugin("shared-memory");
    // Flux also sets the size of shared memory.
    let apart = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: shared-memory, excludes: [flux]}]";
    let input = sized(r#"{"shared-memory": {"size": "2Gi"}}"#, "/size");
    let printed = |command: &[&str]| {
        let arguments = [command, &["--plugin", &plugin]].concat();
        stdout(&run(&arguments, apart, &input))
    };
    assert!(printed(&["render"]).contains("sizeLimit: 2Gi"));
    let line = "\nparameter of shared-memory: size: \"2Gi\" (annotation trainyard.dev/plugin-parameters of the TrainJob)\n";
    assert!(printed(&["explain"]).contains(line));
    let json: Value = serde_json::from_str(&printed(&["explain", "-o", "json"])).unwrap();
    let json = json.pointer("/0").unwrap_or(&json);
    let wanted = json!([{"plugin": "shared-memory", "path": "size", "value": "2Gi"}]);
    assert_eq!(json["parameters"], wanted);

    let refused = |values: &str, parameters: &str| {
        let render = ["render", "--plugin", &plugin];
        refused_with(&render, apart, &sized(values, parameters))
    };
    let place = "error: input.yaml:8: TrainJob ml/job: metadata.annotations[trainyard.dev/plugin-parameters]";
    for (values, parameters, wanted) in [
        (
            r#"{"shared-memory": {"size": "2Gi"}}"#,
            "",
            ".shared-memory.size: is not a parameter that the runtime lists in `parameters` of a plugin; with ClusterTrainingRuntime runtime, a TrainJob can set no parameters; remove it, or use another runtime",
        ),
        (
            r#"{"shared-memory": {"size": 2}}"#,
            "/size",
            ".shared-memory.size: must be a string; found 2; change it",
        ),
        (
            r#"{"torch": {}}"#,
            "/size",
            ".torch: is not a parameter that the runtime lists in `parameters` of a plugin; with ClusterTrainingRuntime runtime, a TrainJob can set `/size` of shared-memory; remove it, or use another runtime",
        ),
        ("size=2Gi", "/size", ": must be JSON; line 1, column 1: "),
    ] {
        let error = refused(values, parameters);
        let wanted = format!("{place}{wanted}");
        assert!(error.contains(&wanted), "{error}\n{wanted}");
    }
    // The schema of runtimes has the pattern of pointers.
    let error = refused("{}", "size");
    assert!(
        error.contains("ClusterTrainingRuntime runtime: spec.plugins[0].parameters[0]: "),
        "{error}"
    );
}

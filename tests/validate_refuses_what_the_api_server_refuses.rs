//! `validate` refuses what an API server or `render` would refuse, with the same field paths and wording, all at once; `render` renders
//! what it accepts.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::fs;

use crate::common::{cases, runtime, trainyard_with_input};

#[test]
fn every_error_is_reported_at_once_with_the_users_path() {
    let input = r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec:
  runtimeRef: {nam: x}
  trainer: {imag: x, numNodes: -1, resourcesPerNode: {limits: {cpu: banana}}, env: [{name: A}, {name: A}]}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: old}
spec:
  runtimeRef: {name: x}
  podSpecOverrides: [{targetJobs: [{name: node}], nodeSelector: {disk: 5}, hostname: a}]
"#;
    let output = trainyard_with_input(input, &["validate", "-f", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    // Errors have the line of their field, or of its parent if the field is absent.
    let bert = |line: usize| format!("error: standard input:{line}: TrainJob default/bert: ");
    let old = |line: usize| format!("error: standard input:{line}: TrainJob default/old: ");
    let (ref_of_bert, trainer, overrides) = (bert(6), bert(7), old(14));
    for wanted in [
        format!("{ref_of_bert}unknown field \"spec.runtimeRef.nam\", did you mean \"name\"?"),
        format!("{trainer}unknown field \"spec.trainer.imag\", did you mean \"image\"?"),
        format!("{ref_of_bert}spec.runtimeRef.name: Required value"),
        format!("{trainer}spec.trainer.numNodes: Invalid value: -1: "),
        format!("{trainer}spec.trainer.resourcesPerNode.limits.cpu: Invalid value: \"banana\": "),
        format!("{trainer}spec.trainer.env[1]: Duplicate value: "),
        format!("{overrides}unknown field \"spec.podSpecOverrides[0].hostname\""),
        format!(
            "{overrides}spec.podSpecOverrides[0].nodeSelector.disk: Invalid value: \"integer\": "
        ),
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(&wanted)),
            "{wanted}\n{text}"
        );
    }
}

/// Errors of the runtime are reported even if the TrainJob has errors.
#[test]
fn train_job_runtime_ref_and_runtime_are_checked_in_one_run() {
    let runtime = runtime(
        "name: x",
        "mlPolicy: {plugin: {name: absent}}, plugins: [{name: gone}],",
        "",
    );
    let jobs = r#"---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec: {runtimeRef: {name: x}, trainer: {imag: y}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: gpt}
spec: {runtimeRef: {name: absent}, trainer: {numNodes: -1}}
"#;
    let input = &format!("{runtime}{jobs}");
    for (command, missing) in [("render", true), ("plan", true), ("validate", false)] {
        let output = trainyard_with_input(input, &[command, "-f", "-"]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        let printed = |part: &str| text.contains(part);
        for wanted in [
            "TrainJob default/bert: unknown field \"spec.trainer.imag\"",
            "TrainJob default/gpt: spec.trainer.numNodes: Invalid value: -1: ",
            "ClusterTrainingRuntime x: spec.mlPolicy.plugin.name: no loaded plugin has the name `absent`",
            "ClusterTrainingRuntime x: spec.plugins[0].name: no loaded plugin has the name `gone`",
        ] {
            assert!(printed(wanted), "{command}: {wanted}\n{text}");
        }
        let reference = "TrainJob default/gpt: spec.runtimeRef.name: ClusterTrainingRuntime `absent` is not in the input";
        assert_eq!(printed(reference), missing, "{command}: {text}");
    }
}

#[test]
fn renderable_input_is_valid() {
    let mut count = 0;
    for case in fs::read_dir(cases())
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if !case.join("expected.yaml").is_file() {
            continue;
        }
        let input = fs::read_to_string(case.join("input.yaml")).unwrap();
        let output = trainyard_with_input(&input, &["validate", "-f", "-"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}", case.display());
        assert!(output.stdout.starts_with(b"valid: "));
        count += 1;
    }
    assert!(count > 40, "only {count} cases were found");
}

/// `validate` accepts a TrainJob whose runtime is missing; it refuses everything else that `render` refuses, with the same lines.
#[test]
fn errors_match_those_of_render() {
    let mut of_plugins = 0;
    for case in fs::read_dir(cases())
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if case.join("expected.yaml").is_file() {
            continue;
        }
        let input = fs::read_to_string(case.join("input.yaml")).unwrap();
        let printed = |command: &str| {
            let output = trainyard_with_input(&input, &[command, "-f", "-"]);
            let lines = String::from_utf8(output.stderr).unwrap();
            let is_of_both = |line: &&str| !line.contains("; pass its file with -f");
            let lines = lines.lines().filter(is_of_both).map(str::to_owned);
            (output.status.code(), lines.collect::<Vec<_>>())
        };
        let (code, errors) = printed("render");
        let code = code.filter(|_| !errors.is_empty());
        assert_eq!(
            printed("validate"),
            (code.or(Some(0)), errors.clone()),
            "{}",
            case.display()
        );
        of_plugins += usize::from(errors.iter().any(|error| error.contains("(plugin ")));
    }
    assert!(of_plugins > 30, "only {of_plugins} cases are of plugins");
}

#[test]
fn skipped_checks_are_reported() {
    let runtime = runtime("name: x", "mlPolicy: {torch: {}},", "");
    let other = JOB
        .replace("bert", "gpt")
        .replace("name: x", "name: elsewhere");
    let both = format!("{JOB}---\n{runtime}");
    let one_missing = format!(
        "{both}---\n{other}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}\n"
    );
    for (args, input, expected) in [
        (
            &[][..],
            JOB,
            "valid for the API server: 1 TrainJob; plugins did not check 1 TrainJob whose runtime is not in the input",
        ),
        (&[], &runtime, "valid for the API server: 1 runtime"),
        (&[], &both, "valid: 1 TrainJob and 1 runtime"),
        (
            &["--no-plugins"],
            &both,
            "valid for the API server: 1 TrainJob and 1 runtime",
        ),
        (
            &[],
            &one_missing,
            "valid: 2 TrainJobs and 1 runtime; plugins did not check 1 TrainJob whose runtime is not in the input; 1 other object not checked",
        ),
    ] {
        let output = trainyard_with_input(input, &[&["validate", "-f", "-"], args].concat());
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim_end(), expected, "{args:?}");
    }
}

const JOB: &str = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec: {runtimeRef: {name: x}}
";

/// Returns the errors of a refused input.
fn refused(input: &str) -> Vec<String> {
    let output = trainyard_with_input(input, &["validate", "-f", "-"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{input}\n{error}");
    assert!(output.stdout.is_empty());
    let lines = error
        .lines()
        .map(|line| line.strip_prefix("error: ").unwrap());
    lines.map(str::to_owned).collect()
}

/// A misspelled kind is an error and not an object of another API. The other objects are still validated.
#[test]
fn unknown_kind_or_version_of_our_group_is_refused() {
    for (written, mistyped) in [
        ("kind: TrainJob", "kind: Trainjob"),
        (
            "trainer.kubeflow.org/v1alpha1",
            "trainer.kubeflow.org/v1alpha11",
        ),
        ("trainer.kubeflow.org/v1alpha1", "kubeflow.org/v1"),
        ("trainer.kubeflow.org/v1alpha1", "trainyard.dev/v1alpha1"),
        ("trainer.kubeflow.org/v1alpha1", "trainer.kubeflow.org"),
    ] {
        let faulty = JOB
            .replace("bert", "other")
            .replace("name: x", "name: x, nam: y");
        let input = format!("{}---\n{faulty}", JOB.replace(written, mistyped));
        let errors = refused(&input);
        let [unknown, field] = &errors[..] else {
            unreachable!("{errors:#?}")
        };
        assert!(
            unknown.starts_with("standard input:2: ")
                && unknown.contains(" default/bert: kind: the kind `")
                && unknown.contains("` is unknown; use TrainJob, TrainingRuntime or "),
            "{unknown}"
        );
        assert!(field.contains("spec.runtimeRef.nam"), "{field}");
    }
}

#[test]
fn duplicate_objects_are_refused_and_both_are_checked() {
    let faulty = JOB.replace("name: x", "name: x, nam: y");
    let map = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: bert}}\n";
    let errors = refused(&format!("{JOB}---\n{faulty}{map}{map}"));
    let double = |line, kind, first| {
        format!(
            "standard input:{line}: {kind} default/bert: is a duplicate; the first one is in standard input:{first}: {kind} default/bert"
        )
    };
    assert_eq!(errors.len(), 3, "{errors:#?}");
    assert_eq!(errors[0], double(6, "TrainJob", 1));
    assert!(errors[1].contains("unknown field \"spec.runtimeRef.nam\""));
    assert_eq!(errors[2], double(13, "ConfigMap", 11));
}

#[test]
fn input_without_checked_objects_is_not_valid() {
    assert_eq!(
        refused(""),
        ["there is no TrainJob and no runtime in the input"]
    );
    assert_eq!(
        refused("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"),
        ["there is no TrainJob and no runtime in the input; 1 other object not checked"]
    );
}

//! `validate` refuses what an API server or `render` would refuse, with the same field paths and wording, all at once; `render` renders
//! what it accepts.

use std::fs;

use serde_json::{Value, json};
use trainyard_model::names::without_digests;

use crate::common::{cases, runtime, stderr, trainyard, trainyard_with_input};

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
        let is_error = |line: &str| line.starts_with("error: ") && line.contains(reference);
        assert_eq!(text.lines().any(is_error), missing, "{command}: {text}");
        assert!(printed(reference), "{command}: {text}");
    }
}

/// Warnings are those of `render`, which `cases_render_as_expected` compares with warnings.txt.
#[test]
fn renderable_input_is_valid_with_the_same_warnings() {
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases().into_values() {
        if !case.join("expected.yaml").is_file() {
            continue;
        }
        let args = ["validate", "--allow-old-forms", "-f", "input.yaml"];
        let output = trainyard(&case, &args);
        let printed = without_digests(&stderr(&output));
        assert!(output.status.success(), "{}: {printed}", case.display());
        assert!(output.stdout.starts_with(b"valid: "));
        let warnings = fs::read_to_string(case.join("warnings.txt")).unwrap_or_default();
        // `validate` has no output that could lack something.
        let is_of_both = |line: &&str| !line.contains(" so the output does not show it; ");
        let warnings: String = warnings.split_inclusive('\n').filter(is_of_both).collect();
        if printed != warnings {
            let case = case.display();
            wrong.push(format!("{case}: expected\n{warnings}\ngot\n{printed}"));
        }
        count += 1;
    }
    assert!(count > 40, "only {count} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `validate` accepts a TrainJob whose runtime is missing, with a warning; it refuses everything else that `render` refuses, with the same lines.
#[test]
fn errors_match_those_of_render() {
    let mut of_plugins = 0;
    for case in cases().into_values() {
        if case.join("expected.yaml").is_file() {
            continue;
        }
        let input = fs::read_to_string(case.join("input.yaml")).unwrap();
        let printed = |command: &str| {
            let forms = (command == "validate").then_some("--allow-old-forms");
            let args: Vec<_> = [command, "-f", "-"].into_iter().chain(forms).collect();
            let output = trainyard_with_input(&input, &args);
            let lines = String::from_utf8(output.stderr).unwrap();
            let is_of_both = |line: &&str| !line.contains("; add it to the input");
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
    // The runtime is not in the input, which is a warning.
    let lines = error.lines().filter(|line| !line.starts_with("warning: "));
    let lines = lines.map(|line| line.strip_prefix("error: ").unwrap());
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

/// Such objects work in files, and `kubectl apply` of them fails.
#[test]
fn forms_for_files_are_refused_unless_allowed() {
    let auto = JOB.replace("{name: x}}", "{name: x}, trainer: {numProcPerNode: auto}}");
    let version = JOB.replace("v1alpha1", "v2alpha1");
    for (input, field) in [
        (auto, "spec.trainer.numProcPerNode: `auto` is"),
        (version, "apiVersion: `trainer.kubeflow.org/v2alpha1` is"),
    ] {
        let errors = refused(&input);
        let [error] = &errors[..] else {
            unreachable!("{errors:#?}")
        };
        assert!(
            error.contains(field) && error.contains("--allow-old-forms"),
            "{error}"
        );
        let args = ["validate", "--allow-old-forms", "-f", "-"];
        let output = trainyard_with_input(&input, &args);
        let warning = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && warning.contains(field),
            "{warning}"
        );
    }
}

#[test]
fn missing_runtimes_are_reported_with_the_most_similar_one() {
    let runtime = runtime("name: torch-distributed", "", "");
    let job = JOB.replace("{name: x}", "{name: torch-distribute}");
    let input = format!("{runtime}---\n{job}");
    let wanted = "TrainJob default/bert: spec.runtimeRef.name: ClusterTrainingRuntime `torch-distribute` is not in the input";
    let output = trainyard_with_input(&input, &["validate", "-f", "-"]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(
        warning.starts_with("warning: ")
            && warning.contains(wanted)
            && warning.contains(", or did you mean `torch-distributed`?"),
        "{warning}"
    );
    let args = ["validate", "--require-runtimes", "-f", "-"];
    let output = trainyard_with_input(&input, &args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.starts_with("error: ") && error.contains(wanted),
        "{error}"
    );
}

#[test]
fn runtimes_of_the_same_name_are_reported_with_how_to_use_them() {
    let cluster = runtime("name: x", "", "");
    let namespaced = |namespace: &str| {
        let kind = cluster.replace("ClusterTrainingRuntime", "TrainingRuntime");
        kind.replace("name: x", &format!("name: x, namespace: {namespace}"))
    };
    let of_kind = JOB.replace("{name: x}", "{kind: TrainingRuntime, name: x}");
    for (runtime, job, advice) in [
        (
            &cluster,
            &of_kind,
            "or set `spec.runtimeRef.kind` to `ClusterTrainingRuntime`, which has this name",
        ),
        (
            &namespaced("default"),
            &JOB.to_owned(),
            "or set `spec.runtimeRef.kind` to `TrainingRuntime`, which has this name",
        ),
        (
            &namespaced("other"),
            &of_kind,
            "or create the TrainJob in the namespace `other`, because only TrainJobs there can use this TrainingRuntime",
        ),
    ] {
        let output =
            trainyard_with_input(&format!("{runtime}\n---\n{job}"), &["validate", "-f", "-"]);
        let warning = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("; add it to the input, {advice}\n");
        assert!(warning.ends_with(&wanted), "{wanted}\n{warning}");
    }
}

fn json_report(input: &str) -> Value {
    let output = trainyard_with_input(input, &["validate", "-o", "json", "-f", "-"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"], output.status.success());
    assert_lines_have_their_parts(&output.stderr, &report);
    report
}

/// Standard error has the errors and warnings as lines, in the order of the report and with the same parts.
fn assert_lines_have_their_parts(stderr: &[u8], report: &Value) {
    let mut lines: Vec<_> = std::str::from_utf8(stderr).unwrap().lines().collect();
    lines.retain(|line| line.starts_with("warning: ") || line.starts_with("error: "));
    let of = |list: &str| report[list].as_array().unwrap().clone();
    let found = [of("warnings"), of("errors")].concat();
    assert_eq!(lines.len(), found.len(), "{lines:#?}\n{report:#}");
    for (line, parts) in lines.iter().zip(&found) {
        let object = &parts["object"];
        for part in [
            &parts["message"],
            &parts["file"],
            &parts["field"],
            &object["kind"],
            &object["namespace"],
            &object["name"],
        ] {
            assert!(line.contains(part.as_str().unwrap_or_default()), "{line}");
        }
        if let Some(number) = parts["line"].as_u64() {
            let is_there = [format!(":{number}: "), format!(": line {number}, ")];
            assert!(is_there.iter().any(|one| line.contains(one)), "{line}");
        }
    }
}

#[test]
fn json_has_the_verdict_errors_and_warnings_in_their_parts() {
    let valid = json_report(JOB);
    assert_eq!(valid["errors"], json!([]));
    assert_eq!(valid["checked"]["trainJobs"], 1);
    assert_eq!(valid["checked"]["withoutRuntime"], 1);
    let bert = json!({"kind": "TrainJob", "namespace": "default", "name": "bert"});
    let warning = &valid["warnings"][0];
    assert_eq!(warning["object"], bert);
    assert_eq!(warning["file"], "standard input");
    assert_eq!(warning["line"], 4);
    assert_eq!(warning["field"], "spec.runtimeRef.name");
    let missing = "ClusterTrainingRuntime `x` is not in the input, which has no runtimes; ";
    let message = warning["message"].as_str().unwrap();
    assert!(message.starts_with(missing), "{message}");
    assert_eq!(valid["omittedWarnings"], 0);

    // The API server names an unknown field in its message alone.
    let refused = json_report(&JOB.replace("name: x", "name: x, nam: y"));
    let error = &refused["errors"][0];
    assert_eq!(error["object"], bert);
    assert_eq!(error["field"], "spec.runtimeRef.nam");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("unknown field "), "{message}");
    assert_eq!(refused["checked"], Value::Null);
}

/// What is not known is absent.
#[test]
fn json_has_the_parts_of_errors_of_files_plugins_and_runtimes() {
    let report = json_report(&format!("{JOB}---\na: [1\n"));
    let error = &report["errors"][0];
    assert_eq!(error["file"], "standard input");
    assert_eq!(error["line"], JOB.lines().count() + 2);
    assert_eq!(error.get("object").or(error.get("field")), None);

    let runtime = runtime("name: x", "mlPolicy: {plugin: {name: gone}},", "");
    let report = json_report(&format!("{runtime}---\n{JOB}"));
    let error = &report["errors"][0];
    let object = json!({"kind": "ClusterTrainingRuntime", "name": "x"});
    assert_eq!(error["object"], object);
    assert_eq!(error["line"], 4);
    assert_eq!(error["field"], "spec.mlPolicy.plugin.name");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("no loaded plugin has the name `gone`; "),
        "{message}"
    );

    let folder = tempfile::tempdir().unwrap();
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n- {nam: x}\n";
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    fs::write(
        folder.path().join("in.yaml"),
        format!("{}---\n{JOB}", crate::common::runtime("name: x", "", "")),
    )
    .unwrap();
    let args = [
        "validate",
        "-o",
        "json",
        "-f",
        "in.yaml",
        "--policy",
        "policy.yaml",
    ];
    let output = crate::common::trainyard(folder.path(), &args);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_lines_have_their_parts(&output.stderr, &report);
    for (at, field) in ["plugins[0].name", "plugins[0].nam"]
        .into_iter()
        .enumerate()
    {
        let error = &report["errors"][at];
        assert_eq!(
            (&error["file"], &error["line"], &error["field"]),
            (&json!("policy.yaml"), &json!(4), &json!(field))
        );
    }
}

#[test]
fn errors_about_quotes_and_patches_say_what_to_write() {
    let pod = "{hostNetwork: true, containers: [{name: node, image: b, resources: {}, ports: [], workngDir: /a}]}";
    let jobs = format!(
        "{{replicatedJobs: [{{name: node, replicas: 2, template: {{spec: {{backoffLimit: 3, template: {{spec: {pod}}}}}}}}}]}}"
    );
    let patch = format!(
        "{{manager: a.example.com/b, trainingRuntimeSpec: {{template: {{spec: {jobs}}}}}}}"
    );
    let env = "trainer: {args: [--lr, 1e-3], env: [{name: A, value: yes}, {name: B, value: 1.10}, {name: C, value: 0777}]}";
    let spec = format!("{{name: x}}, {env}, runtimePatches: [{patch}]}}");
    let errors = refused(&JOB.replace("{name: x}}", &spec)).join("\n");
    for wanted in [
        "must be of type string: \"number\"; write it in quotes: \"1e-3\"",
        "must be of type string: \"boolean\"; write it in quotes: \"yes\"",
        "must be of type string: \"number\"; write it in quotes: \"1.10\"",
        "must be of type string: \"integer\"; write it in quotes: \"0777\"",
        "containers[0].image\"; patches cannot set it, but for the trainer, `spec.trainer.image` can",
        "patches cannot set it, but for the trainer, `spec.trainer.resourcesPerNode` can",
        "replicatedJobs[0].replicas\"; patches cannot set it, and a TrainJob has no other field for it; set it in the runtime",
        ".backoffLimit\"; patches cannot set it, and a TrainJob has no other field for it; set it in the runtime",
        ".hostNetwork\"; patches cannot set it, and a TrainJob has no other field for it; set it in the runtime",
        ".ports\"; patches cannot set it, and a TrainJob has no other field for it; set it in the runtime",
    ] {
        assert!(errors.contains(wanted), "{wanted}\n{errors}");
    }
}

#[test]
fn errors_about_amounts_and_counts_say_what_to_write_once() {
    let limits = "{nvidia.com/gpu: 1.5, cpu: 1.5, memory: 1Gib}";
    let trainer = format!("trainer: {{numNodes: '2', resourcesPerNode: {{limits: {limits}}}}}");
    let errors = refused(&JOB.replace("{name: x}}", &format!("{{name: x}}, {trainer}}}")));
    for (path, wanted) in [
        ("spec.trainer.numNodes", "; write it without quotes: 2"),
        (
            "limits.nvidia.com/gpu",
            "; devices are counted in whole numbers",
        ),
        ("limits.cpu", "; write it in quotes: \"1.5\""),
        (
            "limits.memory",
            "; write an amount such as `4`, `500m` or `800Gi`",
        ),
    ] {
        let about: Vec<_> = errors.iter().filter(|error| error.contains(path)).collect();
        assert_eq!(about.len(), 1, "{path}: {errors:#?}");
        assert!(about[0].ends_with(wanted), "{}", about[0]);
    }
}

#[test]
fn patches_of_the_policy_name_the_fields_of_the_trainer() {
    let patch = "{manager: a.example.com/b, trainingRuntimeSpec: {mlPolicy: {numNodes: 3}}}";
    let spec = format!("{{name: x}}, runtimePatches: [{patch}]}}");
    let errors = refused(&JOB.replace("{name: x}}", &spec)).join("\n");
    assert!(
        errors.contains("set the numbers of nodes and processes; set anything else in the runtime"),
        "{errors}"
    );
}

#[test]
fn values_of_metadata_are_quoted_as_they_were_written() {
    let labels = "{name: bert, labels: {a: 1.10, b: 007, c: on}}";
    let errors = refused(&JOB.replace("{name: bert}", labels)).join("\n");
    for wanted in [
        "metadata.labels[a]: must be a string; found the number 1.1; quote it: \"1.10\"",
        "metadata.labels[b]: must be a string; found the integer 7; quote it: \"007\"",
        "metadata.labels[c]: must be a string; found the boolean true; quote it: \"on\"",
    ] {
        assert!(errors.contains(wanted), "{wanted}\n{errors}");
    }
}

/// The container of an initializer has the name of its step.
#[test]
fn fields_that_patches_of_other_containers_lack_say_where_they_belong() {
    let container = |name: &str, field: &str| {
        let pod = format!("{{containers: [{{name: {name}, {field}}}]}}");
        format!("template: {{spec: {{template: {{spec: {pod}}}}}}}")
    };
    let patched = |name: &str, template: &str| {
        let jobs = format!("{{replicatedJobs: [{{name: {name}, {template}}}]}}");
        let patch = format!(
            "{{manager: a.example.com/b, trainingRuntimeSpec: {{template: {{spec: {jobs}}}}}}}"
        );
        refused(&JOB.replace(
            "{name: x}}",
            &format!("{{name: x}}, runtimePatches: [{patch}]}}"),
        ))
        .join("\n")
    };
    let (dataset, model) = ("dataset-initializer", "model-initializer");
    let runtime = "patches cannot set it, and a TrainJob cannot set it for an initializer; set it in the runtime";
    let other = "and a TrainJob sets it only for the container `node` of the trainer; set it in the runtime";
    for (name, template, wanted) in [
        (
            dataset,
            container(dataset, "storageUri: hf://a/b"),
            "but `spec.initializer.dataset.storageUri` can",
        ),
        (
            model,
            container(model, "envFrom: [{secretRef: {name: a}}]"),
            "but `spec.initializer.model.secretRef` can",
        ),
        (
            "fetch",
            container(model, "storageUri: hf://a/b"),
            "but `spec.initializer.model.storageUri` can",
        ),
        (dataset, container(dataset, "image: b"), runtime),
        (
            model,
            "template: {spec: {parallelism: 2}}".to_owned(),
            runtime,
        ),
        (
            "node",
            container("node", "image: b"),
            "but for the trainer, `spec.trainer.image` can",
        ),
        ("sidecars", container("proxy", "image: b"), other),
        (
            "prepare",
            container("node", "resources: {}").replace("containers", "initContainers"),
            other,
        ),
    ] {
        let errors = patched(name, &template);
        assert!(errors.contains(wanted), "{wanted}\n{errors}");
        assert_eq!(errors.contains("spec.trainer"), name == "node", "{errors}");
    }
    let hook = container("node", "lifecycle: {preStop: {exec: {command: [a]}}}");
    let errors = patched("node", &hook);
    assert!(!errors.contains("spec.trainer.command"), "{errors}");
    let old = "podSpecOverrides: [{targetJobs: [{name: dataset-initializer}], containers: [{name: dataset-initializer, image: b}]}]";
    let errors = refused(&JOB.replace("{name: x}}", &format!("{{name: x}}, {old}}}"))).join("\n");
    assert!(errors.contains(runtime), "{errors}");
}

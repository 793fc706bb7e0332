//! `explain` names who set a field, from what and why: any field of the JobSet, in its spelling or in the record's.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn explain(args: &[&str]) -> Output {
    explain_in("examples/torch-llama", args)
}

fn explain_in(folder: &str, args: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    Command::new(env!("CARGO_BIN_EXE_trainyard"))
        .args(["explain", "-f"])
        .arg(example)
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn text(output: Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The fields that `explain` lists, with the words of one line each.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn a_plugins_field_has_its_value_and_reason() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].env[PET_NNODES]",
    ]));
    let row = "pod-sets[node].containers[node].env[PET_NNODES] torch 0.1.0 4 - the number of nodes";
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn a_train_jobs_field_has_the_runtimes_value_and_the_path_that_asked() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].requests[memory]",
    ]));
    let row = "pod-sets[node].containers[node].requests[memory] TrainJob 1536Gi 1Ti spec.trainer.resourcesPerNode.requests[memory]";
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn processes_of_mpi_are_told_with_the_claim_whose_devices_they_use() {
    let explained = |field: &str| {
        text(explain_in(
            "tests/cases/dra-mpi-launcher-as-node/input.yaml",
            &[field],
        ))
    };
    let hostfile = explained("pod-sets[launcher].volumes[mpi-hostfile]");
    for set in ["node", "launcher"] {
        let why = format!(
            "2 processes in each pod of `{set}`, one for each accelerator by resource-claim/gpu"
        );
        assert!(hostfile.contains(&why), "{hostfile}");
    }
    let devices = explained("pod-sets[node].devices");
    assert!(devices.contains("dra 0.1.0"), "{devices}");
    let nodes = explained("pod-sets[node].count");
    let why = "its `nodeSets` give this pod set the nodes of spec.trainer.numNodes";
    assert!(
        nodes.contains("mpi 0.1.0") && nodes.contains(why),
        "{nodes}"
    );
}

#[test]
fn the_job_sets_spelling_finds_the_same() {
    let container = "spec.replicatedJobs[0].template.spec.template.spec.containers[0]";
    let by_job_set = text(explain(&[&format!("{container}.env")]));
    let by_record = text(explain(&["pod-sets[node].containers[node].env"]));
    assert_eq!(by_job_set, by_record);
    assert_eq!(rows(&by_record).len(), 6, "{by_record}");
    let count = text(explain(&[
        "spec.replicatedJobs[0].template.spec.parallelism",
    ]));
    assert!(count.contains("pod-sets[node].count"), "{count}");
}

#[test]
fn as_json_the_plugin_has_its_version_and_digest() {
    let text = text(explain(&[
        "pod-sets[node].containers[node].ports",
        "-o",
        "json",
    ]));
    let explained: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        explained.pointer("/0/trainJob"),
        Some(&Value::from("llama-sft"))
    );
    let by = explained
        .pointer("/0/fields/0/steps/0/by")
        .unwrap()
        .to_string();
    for part in ["torch", "0.1.0", "sha256:", "the nodes meet on this port"] {
        assert!(by.contains(part), "{by}");
    }
}

const POD: &str = "spec.replicatedJobs[0].template.spec.template.spec";

/// The one row of a field: its path and who set it to what.
fn row(field: &str) -> String {
    let text = text(explain(&[field]));
    let rows = rows(&text);
    let [row] = rows.as_slice() else {
        panic!("{field}: {text}")
    };
    row.join(" ")
}

#[test]
fn what_is_below_or_beside_a_recorded_value_is_answered_by_it() {
    for (field, wanted) in [
        (
            "containers[0].env[2].value",
            "pod-sets[node].containers[node].env[PET_NNODES] torch",
        ),
        (
            "containers[0].resources.requests.memory",
            "pod-sets[node].containers[node].requests[memory] TrainJob 1536Gi",
        ),
        (
            "containers[0].ports[1].containerPort",
            "pod-sets[node].containers[node].ports[29500/TCP] torch",
        ),
        (
            "containers[0].command[1]",
            "pod-sets[node].containers[node].command TrainJob",
        ),
    ] {
        let row = row(&format!("{POD}.{field}"));
        assert!(row.starts_with(wanted), "{field}: {row}");
    }
}

#[test]
fn items_are_found_by_name_as_by_position() {
    let pod = "spec.replicatedJobs[node].template.spec.template.spec";
    for (named, placed) in [
        ("containers[node].env[PET_NNODES]", "containers[0].env[2]"),
        (
            "containers[\"node\"].ports[29500]",
            "containers[0].ports[1]",
        ),
        (
            "containers[node].ports[29500/TCP]",
            "containers[0].ports[1]",
        ),
        ("volumes[dshm]", "volumes[0]"),
    ] {
        let named = row(&format!("{pod}.{named}"));
        assert_eq!(named, row(&format!("{POD}.{placed}")));
    }
    let labels = "template.metadata.labels[trainer.kubeflow.org/trainjob-ancestor-step]";
    row(&format!("spec.replicatedJobs[node].{labels}"));
}

#[test]
fn what_the_runtime_wrote_names_its_field() {
    let ports =
        "spec.replicatedJobs[node].template.spec.template.spec.containers[node].ports[9400].name";
    assert_eq!(
        row(&format!("{POD}.containers[0].ports[0].name")),
        format!("{ports} runtime metrics - spec.template.{POD}.containers[0].ports[0].name")
    );
    assert_eq!(
        row("spec.failurePolicy.maxRestarts"),
        "spec.failurePolicy.maxRestarts runtime 3 - spec.template.spec.failurePolicy.maxRestarts"
    );
    let annotation = "metadata.annotations[alpha.jobset.sigs.k8s.io/exclusive-topology]";
    let wanted =
        format!("{annotation} runtime cloud.provider.com/rack - spec.template.{annotation}");
    assert_eq!(row(annotation), wanted);
    let asked = "pod-sets[node].containers[node].env[NCCL_DEBUG]";
    assert!(row(asked).contains("containers[node].env[NCCL_DEBUG] runtime"));
}

#[test]
fn what_the_record_does_not_hold_is_answered_too() {
    let job = "spec.replicatedJobs[node].template.spec";
    for (field, wanted) in [
        (
            "spec.suspend",
            "spec.suspend trainyard false - the TrainJob does not say it: it runs".to_owned(),
        ),
        (
            "spec.replicatedJobs[0].template.spec.completions",
            format!("{job}.completions TrainJob 4 - spec.trainer.numNodes"),
        ),
        (
            "spec.replicatedJobs[0].template.spec.parallelism",
            "pod-sets[node].count TrainJob 4 - spec.trainer.numNodes".to_owned(),
        ),
        (
            "metadata.name",
            "metadata.name TrainJob llama-sft - metadata.name".to_owned(),
        ),
        (
            "kind",
            "kind trainyard JobSet - every JobSet of a TrainJob has it".to_owned(),
        ),
    ] {
        assert_eq!(row(field), wanted);
    }
    let all = text(explain(&[]));
    for path in [
        "spec.suspend ",
        "pod-sets[node].count ",
        &format!("{job}.completions "),
    ] {
        assert!(all.contains(path), "{path}: {all}");
    }
}

/// Standard error of a run that ends with that code and prints nothing.
fn refused(field: &str, code: i32) -> String {
    let output = explain(&[field]);
    assert_eq!(output.status.code(), Some(code), "{field}");
    assert!(output.stdout.is_empty(), "{field}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_not_in_the_job_set_is_an_error_with_the_nearest_parent() {
    for (field, near) in [
        (
            "spec.suspended",
            "whose `spec` has failurePolicy, replicatedJobs, suspend",
        ),
        ("status", "which has apiVersion, kind, metadata, spec"),
        (
            "pod-sets[nodes].containers[node].env",
            "whose `spec.replicatedJobs` has node",
        ),
        (
            &format!("{POD}.containers[0].ports[2]"),
            "containers[node].ports` has 9400, 29500",
        ),
        (
            "spec.suspend.reason",
            "whose `spec.suspend` has nothing below it",
        ),
    ] {
        let error = refused(field, 1);
        let there = format!("`{field}` is not in the JobSet, ");
        assert!(error.contains(&there) && error.contains(near), "{error}");
    }
}

#[test]
fn a_train_job_without_the_field_is_left_out_with_a_warning() {
    let field = format!("{POD}.containers[0].resources");
    let output = explain_in("tests/cases/torch-two-jobs", &[&field]);
    let warned = String::from_utf8(output.stderr.clone()).unwrap();
    let text = text(output);
    assert!(
        text.contains("lab/alpha") && !text.contains("ml/zeta"),
        "{text}"
    );
    let wanted = format!("TrainJob ml/zeta: `{field}` is not in the JobSet");
    assert!(
        warned.contains("warning: ") && warned.contains(&wanted),
        "{warned}"
    );
}

#[test]
fn what_is_no_path_is_an_error_that_shows_one() {
    for field in [
        "[[[",
        "",
        ".",
        "spec.",
        "spec..suspend",
        "spec[",
        "spec[]",
        "spec[0]x",
    ] {
        let error = refused(field, 2);
        let shows = "no path of a field, as spec.trainer.env[2].name";
        assert!(error.contains(shows), "{field}: {error}");
    }
}

/// An override of an old dialect is told as its author wrote it, and not as the patch that it became; what Kueue patched
/// beside it keeps the position that it has in the file.
#[test]
fn what_an_old_field_set_names_that_field() {
    let why = |folder: &str| -> Vec<String> {
        let explained = text(explain_in(folder, &["-o", "json"]));
        let explained: Value = serde_json::from_str(&explained).unwrap();
        let fields = explained.pointer("/0/fields").and_then(Value::as_array);
        let steps = fields
            .unwrap()
            .iter()
            .filter_map(|field| field.get("steps")?.as_array());
        let by = steps.flatten().filter_map(|step| step.get("by"));
        let patched = by.filter(|by| by.get("manager").is_some());
        let why = patched.filter_map(|by| by.get("field")?.as_str());
        why.map(str::to_owned).collect()
    };
    let metadata = [
        "annotations[lab.example.com/cost]",
        "labels[owner]",
        "labels[queue]",
    ];
    assert_eq!(
        why("tests/cases/dialect-metadata"),
        metadata.map(|field| format!("spec.{field}"))
    );
    let pod = "trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec";
    let old = "spec.podTemplateOverrides[0].spec.nodeSelector";
    assert_eq!(
        why("tests/cases/dialect-overrides-beside-kueue"),
        [
            format!("{old}[kind]"),
            format!("spec.runtimePatches[0].{pod}.nodeSelector[kind]"),
            format!("{old}[zone]"),
        ]
    );
}

//! `explain` shows what set a field, from which value and why, for any field of the JobSet, by its JobSet path or its record path.

use std::process::Output;

use serde_json::Value;

use crate::common::{case, root, stdout, trainyard};

fn explain(args: &[&str]) -> Output {
    explain_in("examples/torch-llama", args)
}

fn explain_in(folder: &str, args: &[&str]) -> Output {
    trainyard(&root(), &[&["explain", "-f", folder], args].concat())
}

/// Returns the table of `explain`.
fn table(fields: &[&str]) -> String {
    stdout(&explain(&[fields, &["-o", "wide"]].concat()))
}

/// Returns the fields of a table, each with the words of its line.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn field_of_a_plugin_has_its_value_and_reason() {
    let text = table(&["pod-sets[node].containers[node].env[PET_NNODES]"]);
    let row = format!("{NODE}.env[PET_NNODES] torch 0.1.0 4 - the number of nodes");
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn field_of_a_train_job_has_the_runtime_value_and_its_path() {
    let text = table(&["pod-sets[node].containers[node].requests[memory]"]);
    let row = format!(
        "{NODE}.resources.requests[memory] TrainJob 1536Gi 1Ti spec.trainer.resourcesPerNode.requests[memory]"
    );
    assert_eq!(rows(&text), [row.split(' ').collect::<Vec<_>>()]);
}

#[test]
fn mpi_processes_name_the_claim_whose_devices_they_use() {
    let explained = |field: &str| {
        stdout(&explain_in(
            "plugins/dra/cases/dra-mpi-launcher-as-node/input.yaml",
            &[field],
        ))
    };
    let hostfile = explained("pod-sets[launcher].volumes[mpi-hostfile]");
    for set in ["node", "launcher"] {
        let why = format!(
            "2 processes in each pod of `{set}`, one for each accelerator, counted from resource-claim/gpu"
        );
        assert!(hostfile.contains(&why), "{hostfile}");
    }
    let devices = explained("pod-sets[node].devices");
    assert!(devices.contains("dra 0.1.0"), "{devices}");
    let nodes = explained("pod-sets[node].count");
    let why = "its `nodeSets` assign the nodes of spec.trainer.numNodes to this pod set";
    assert!(
        nodes.contains("mpi 0.1.0") && nodes.contains(why),
        "{nodes}"
    );
}

#[test]
fn job_set_paths_find_the_same_field() {
    let container = "spec.replicatedJobs[0].template.spec.template.spec.containers[0]";
    let by_job_set = table(&[&format!("{container}.env")]);
    let by_record = table(&["pod-sets[node].containers[node].env"]);
    assert_eq!(by_job_set, by_record);
    assert_eq!(rows(&by_record).len(), 6, "{by_record}");
    let count = stdout(&explain(&[
        "spec.replicatedJobs[0].template.spec.parallelism",
    ]));
    assert_eq!(stdout(&explain(&["pod-sets[node].count"])), count);
    assert!(count.contains("template.spec.parallelism: 4"), "{count}");
}

#[test]
fn emitted_objects_name_their_plugin() {
    let explained = |more: &[&str]| {
        let arguments = [&["explain", "-f", "input.yaml"], more].concat();
        stdout(&trainyard(&case("coscheduling-timeout"), &arguments))
    };
    let line =
        "object: PodGroup bert (scheduling.x-k8s.io/v1alpha1), emitted by coscheduling 0.1.0\n";
    assert!(explained(&[]).contains(line), "{}", explained(&[]));
    assert!(explained(&["-o", "wide"]).contains(line));
    let report: Value = serde_json::from_str(&explained(&["-o", "json"])).unwrap();
    assert_eq!(report[0]["objects"][0]["kind"], "PodGroup");
}

#[test]
fn json_has_the_plugins_version_and_digest() {
    let text = stdout(&explain(&[
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
    for part in ["torch", "0.1.0", "sha256:", "rendezvous port"] {
        assert!(by.contains(part), "{by}");
    }
}

const POD: &str = "spec.replicatedJobs[0].template.spec.template.spec";
const NODE: &str = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";

/// Returns the only row of a field: its path, its source and its value.
fn row(field: &str) -> String {
    let text = table(&[field]);
    let rows = rows(&text);
    let [row] = rows.as_slice() else {
        panic!("{field}: {text}")
    };
    row.join(" ")
}

#[test]
fn parents_and_children_of_a_recorded_value_find_it() {
    for (field, wanted) in [
        ("containers[0].env[2].value", "env[PET_NNODES] torch"),
        (
            "containers[0].resources.requests.memory",
            "resources.requests[memory] TrainJob 1536Gi",
        ),
        (
            "containers[0].ports[1].containerPort",
            "ports[29500/TCP] torch",
        ),
        ("containers[0].command[1]", "command TrainJob"),
    ] {
        let row = row(&format!("{POD}.{field}"));
        let wanted = format!("{NODE}.{wanted}");
        assert!(row.starts_with(&wanted), "{field}: {row}");
    }
}

#[test]
fn items_are_found_by_name_and_by_index() {
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
fn fields_of_the_runtime_name_their_path() {
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
fn fields_outside_the_record_are_explained() {
    let job = "spec.replicatedJobs[node].template.spec";
    for (field, wanted) in [
        (
            "spec.suspend",
            "spec.suspend trainyard false - not set in the TrainJob; defaults to false".to_owned(),
        ),
        (
            "spec.replicatedJobs[0].template.spec.completions",
            format!("{job}.completions TrainJob 4 - spec.trainer.numNodes"),
        ),
        (
            "spec.replicatedJobs[0].template.spec.parallelism",
            format!("{job}.parallelism TrainJob 4 - spec.trainer.numNodes"),
        ),
        (
            "metadata.name",
            "metadata.name TrainJob llama-sft - metadata.name".to_owned(),
        ),
        (
            "kind",
            "kind trainyard JobSet - the same for every TrainJob".to_owned(),
        ),
    ] {
        assert_eq!(row(field), wanted);
    }
    let all = table(&[]);
    for path in [
        "spec.suspend ",
        &format!("{job}.parallelism "),
        &format!("{job}.completions "),
    ] {
        assert!(all.contains(path), "{path}: {all}");
    }
}

/// The whole output for the smallest example is readable at any width.
#[test]
fn fields_are_grouped_by_container_and_never_truncated() {
    let printed = stdout(&explain(&[]));
    let wanted = "\
TrainJob research/llama-sft

JobSet
  spec.suspend: false
    set by trainyard: not set in the TrainJob; defaults to false

spec.replicatedJobs[node]
  template.spec.completions: 4
    set by TrainJob: spec.trainer.numNodes
  template.spec.parallelism: 4
    set by TrainJob: spec.trainer.numNodes

spec.replicatedJobs[node].template.spec.template.spec.containers[node]
  args: [\"--epochs=3\"]
    set by TrainJob: spec.trainer.args
  command: [\"torchrun\",\"/workspace/sft.py\"]
    set by TrainJob: spec.trainer.command
  env[LEARNING_RATE]: 2e-5
    set by TrainJob: spec.trainer.env[0]
  env[PET_MASTER_ADDR]: llama-sft-node-0-0.llama-sft
    set by torch 0.1.0: the first pod of the trainer's replicated job
  env[PET_MASTER_PORT]: 29500
    set by torch 0.1.0: the port on which the nodes meet
  env[PET_NNODES]: 4
    set by torch 0.1.0: the number of nodes
  env[PET_NODE_RANK]: {\"fieldRef\":{\"fieldPath\":\"metadata.annotations['batch.kubernetes.io/job-completion-index']\"}}
    set by torch 0.1.0: the pod's index in its Job
  env[PET_NPROC_PER_NODE]: auto
    set by torch 0.1.0: a node has GPUs, which torchrun counts
  image: registry.example.com/llama-sft:v12
    set by TrainJob: spec.trainer.image
    was: registry.example.com/pytorch:2.10-cuda12.8
  ports[29500/TCP]: {\"containerPort\":29500}
    set by torch 0.1.0: rendezvous port
  resources.limits[nvidia.com/gpu]: 8
    set by TrainJob: spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]
    was: 8
  resources.requests[cpu]: 96
    set by TrainJob: spec.trainer.resourcesPerNode.requests[cpu]
    was: 96
  resources.requests[memory]: 1536Gi
    set by TrainJob: spec.trainer.resourcesPerNode.requests[memory]
    was: 1Ti
  resources.requests[nvidia.com/gpu]: 8
    set by TrainJob: spec.trainer.resourcesPerNode.requests[nvidia.com/gpu]
    was: 8
";
    assert_eq!(printed, wanted);
}

/// A command that two sources set, a container that a plugin added, and fields outside containers.
#[test]
fn changes_are_listed_newest_first() {
    let printed = stdout(&explain_in("examples/flux-lammps", &[]));
    let command = r#"
  command: ["/bin/bash","/etc/flux-config/entrypoint.sh"]
    set by flux 0.1.0: Flux runs the command on 2 nodes, with 4 tasks on each: the number in the TrainJob or the runtime
    was: ["lmp","-v","x","4","-v","y","4","-v","z","4","-in","in.reaxc.hns","-nocite"]
    set by TrainJob: spec.trainer.command
"#;
    let container = "
spec.replicatedJobs[node].template.spec.template.spec.initContainers[flux-installer]
  set by flux 0.1.0: Flux comes from an image of its own
  command: ";
    let volume = "
spec.replicatedJobs[node].template.spec.template
  spec.affinity.";
    for part in [command, container, volume] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    assert!(!printed.contains('…'), "{printed}");
}

#[test]
fn absent_fields_are_distinguished() {
    let case = "plugins/dra/cases/dra-per-node/input.yaml";
    let printed = stdout(&explain_in(case, &["pod-sets[node].devices"]));
    let wanted = "
Known to plugins, not part of the JobSet
  pod-sets[node].devices[resource-claim/";
    assert!(printed.contains(wanted), "{printed}");
}

/// An env var that a plugin set in one container and the runtime in another.
#[test]
fn env_vars_are_found_by_bare_name() {
    let printed = stdout(&explain(&["PET_NNODES", "NCCL_DEBUG"]));
    let wanted = format!(
        "\
TrainJob research/llama-sft

{NODE}
  env[NCCL_DEBUG]: WARN
    set by runtime: spec.template.{POD}.containers[0].env[0]
  env[PET_NNODES]: 4
    set by torch 0.1.0: the number of nodes
"
    );
    assert_eq!(printed, wanted);
    // It is explained in each container that has it.
    let printed = stdout(&explain_in("examples/mpi", &["OMP_NUM_THREADS"]));
    assert_eq!(
        printed.matches("  env[OMP_NUM_THREADS]: 2\n").count(),
        2,
        "{printed}"
    );
}

#[test]
fn several_fields_are_explained_once_each() {
    let both = stdout(&explain(&["spec.suspend", "spec", "metadata.name"]));
    assert_eq!(both.matches("spec.suspend: ").count(), 1, "{both}");
    assert_eq!(both.matches("metadata.name: ").count(), 1, "{both}");
    let output = explain(&["spec.suspend", "PET_NODES"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    let wanted = "TrainJob research/llama-sft: `PET_NODES` is not in the JobSet, which has apiVersion, kind, metadata, spec; no container has an env var of that name, but there are LEARNING_RATE, NCCL_DEBUG, PET_MASTER_ADDR, ";
    assert!(error.contains(wanted), "{error}");
}

/// Returns the standard error of a run that exits with this code and without output.
fn refused(field: &str, code: i32) -> String {
    let output = explain(&[field]);
    assert_eq!(output.status.code(), Some(code), "{field}");
    assert!(output.stdout.is_empty(), "{field}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn unknown_field_is_an_error_with_the_nearest_parent() {
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
        ("spec.suspend.reason", "whose `spec.suspend` has no fields"),
    ] {
        let error = refused(field, 1);
        let there = format!("`{field}` is not in the JobSet, ");
        assert!(error.contains(&there) && error.contains(near), "{error}");
    }
}

#[test]
fn train_job_without_the_field_is_skipped_with_a_warning() {
    let field = format!("{POD}.containers[0].resources");
    let output = explain_in("plugins/torch/cases/torch-two-jobs", &[&field]);
    let warned = String::from_utf8(output.stderr.clone()).unwrap();
    let text = stdout(&output);
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
fn invalid_path_is_an_error_with_an_example() {
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
        let shows = "not a field path, such as spec.trainer.env[2].name";
        assert!(error.contains(shows), "{field}: {error}");
    }
}

/// An override of an old dialect is explained by the field that its author wrote, and not by the patch that it became. Patches of Kueue
/// keep their position in the file.
#[test]
fn values_set_by_an_old_field_name_that_field() {
    let why = |folder: &str| -> Vec<String> {
        let explained = stdout(&explain_in(folder, &["-o", "json"]));
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

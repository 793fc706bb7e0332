//! A TrainJob on a shipped runtime becomes the same objects as on the reference's runtime of the same name, rendered by the
//! reference. Only the manifests and the rendering differ. Differences of the manifests are in a table of their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;
use trainyard_api::yaml;
use trainyard_cluster::Oracle;
use trainyard_divergences::rows::SHIPPED;

use super::{
    Found,
    reference::{Answers, Reference, Runs},
    table, trainyard,
};
use crate::common::{answers, root};

/// The runtimes that both sides ship.
const NAMES: [&str; 8] = [
    "deepspeed-distributed",
    "jax-distributed",
    "mlx-distributed",
    "torch-distributed",
    "torchtune-llama3.2-1b",
    "torchtune-llama3.2-3b",
    "torchtune-qwen2.5-1.5b",
    "xgboost-distributed",
];

/// The runtime that only the reference ships, because it needs the reference's data cache (docs/runtimes.md).
const LEFT_OUT: &str = "torch-distributed-with-cache";

/// The TrainJobs of every runtime, each with a name and the rest of its spec.
const JOBS: [(&str, &str); 5] = [
    ("defaults", ""),
    (
        "command",
        "  trainer: {numNodes: 4, command: [python, train.py], args: [--epochs, '3']}",
    ),
    (
        "gpus",
        "  trainer: {numNodes: 2, command: [python, train.py], resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}",
    ),
    (
        "image",
        "  trainer: {numNodes: 2, image: registry.example.com/own:1, env: [{name: LOG_LEVEL, value: debug}]}",
    ),
    (
        "queued",
        "  suspend: true
  trainer: {numNodes: 2}
  runtimePatches:
  - manager: a.example.com/queue
    trainingRuntimeSpec: {template: {metadata: {labels: {team: nlp}}, spec: {replicatedJobs: [
      {name: node, template: {spec: {template: {spec: {nodeSelector: {zone: a}}}}}}]}}}",
    ),
];

/// Further TrainJobs of the runtimes of torchtune.
const OF_TORCHTUNE: [(&str, &str); 4] = [
    (
        "tune",
        "  trainer: {command: [tune, run], args: [epochs=3, batch_size=8]}",
    ),
    (
        "tune-one-gpu",
        "  trainer: {command: [tune, run], resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}",
    ),
    (
        "tune-lora",
        "  trainer: {command: [tune, run], args: ['model.lora_attn_modules=[q_proj,v_proj]', model.lora_rank=8]}",
    ),
    (
        "tune-own-model",
        "  initializer:
    dataset: {storageUri: 'hf://team/dialogues', secretRef: {name: hub}}
    model: {storageUri: 'hf://team/model', env: [{name: HF_HUB_OFFLINE, value: '0'}]}
  trainer: {command: [tune, run], args: [dataset.column_map.input=question]}",
    ),
];

/// The rows of divergences.md that these TrainJobs show, with the beginnings of the runtimes' names.
const LISTED: [(&str, &[&str]); 11] = [
    ("shipped-restarts", &[""]),
    ("shipped-ssh-server", MPI),
    ("shipped-shared-memory", &[""]),
    (
        "env-without-trainer",
        &["jax-", "torch-", "torchtune-", "xgboost-"],
    ),
    ("mpi-image", MPI),
    ("mpi-mutable-keys", MPI),
    ("mpi-one-node", MPI),
    ("mpi-open-mpi-5", MPI),
    ("mpi-own-line", MPI),
    ("mpi-runtime-nodes", MPI),
    ("mpi-slots", MPI),
];

/// The runtimes with a launcher.
const MPI: &[&str] = &["deepspeed-", "mlx-"];

/// The checked-in answers of the reference, to TrainJobs on its own runtimes.
const ANSWERS: &str = "oracle/runtimes.jsonl";

/// Returns the TrainJobs, by runtime and name.
fn jobs() -> BTreeMap<String, String> {
    let of = |runtime: &'static str| {
        let more = if runtime.starts_with("torchtune-") {
            &OF_TORCHTUNE[..]
        } else {
            &[]
        };
        let job = move |(name, spec): &(&str, &str)| {
            let text = format!(
                "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: bert, namespace: ml}}\nspec:\n  \
                 runtimeRef: {{name: {runtime}}}\n{spec}\n"
            );
            (format!("{runtime}/{name}"), text)
        };
        JOBS.iter().chain(more).map(job)
    };
    NAMES.into_iter().flat_map(of).collect()
}

/// Returns the input of a TrainJob and its runtime, which is in a text of runtimes by name.
fn input(name: &str, job: &str, runtimes: &BTreeMap<String, String>) -> String {
    format!("{}\n---\n{job}", runtimes[runtime_of(name)])
}

fn runtime_of(job: &str) -> &str {
    job.split('/').next().unwrap()
}

/// Returns the runtimes in the YAML files below a folder, by name.
fn below(folder: &Path) -> BTreeMap<String, String> {
    let mut runtimes = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            runtimes.extend(below(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let value = first(&text);
        if value["kind"] == "ClusterTrainingRuntime" {
            let name = value["metadata"]["name"].as_str().unwrap();
            runtimes.insert(name.to_owned(), text);
        }
    }
    runtimes
}

fn first(text: &str) -> Value {
    yaml::read(text).remove(0).unwrap().value
}

/// Returns the shipped runtimes by name.
fn ours() -> BTreeMap<String, String> {
    let files = trainyard_plugin_folders::runtimes(&root())
        .unwrap()
        .into_iter();
    files
        .map(|(name, file)| (name, fs::read_to_string(file).unwrap()))
        .collect()
}

/// Returns the runtimes of the reference, with the tags that its overlay for users sets.
fn theirs() -> BTreeMap<String, String> {
    let manifests = Oracle::reference().unwrap().join("manifests");
    let mut runtimes = below(&manifests.join("base/runtimes"));
    let overlay = manifests.join("overlays/runtimes/kustomization.yaml");
    let overlay = first(&fs::read_to_string(overlay).unwrap());
    for image in overlay["images"].as_array().unwrap() {
        let [name, tag] = ["name", "newTag"].map(|key| image[key].as_str().unwrap());
        for text in runtimes.values_mut() {
            *text = text.replace(
                &format!("image: {name}\n"),
                &format!("image: {name}:{tag}\n"),
            );
        }
    }
    runtimes
}

#[test]
fn every_row_about_shipped_runtimes_has_a_matcher() {
    let matched: Vec<_> = SHIPPED.iter().map(|row| row.id).collect();
    assert_eq!(table::shipped(), matched);
}

#[test]
fn shipped_runtimes_render_as_those_of_the_reference() {
    let (jobs, ours) = (jobs(), ours());
    let answers = answers::recorded(ANSWERS, &jobs);
    let mut found = Found {
        further: SHIPPED,
        ..Found::default()
    };
    for (name, job) in &jobs {
        let input = input(name, job, &ours);
        found.add(name, &input, &trainyard::of_text(&input), &answers[name]);
    }
    found.assert_listed();
    let shown = found.shown.into_iter().map(|(row, jobs)| {
        let runtimes = jobs.iter().map(|job| runtime_of(job).to_owned());
        (row, runtimes.collect::<BTreeSet<_>>())
    });
    let listed = LISTED.map(|(row, runtimes)| {
        let named = |name: &&str| runtimes.iter().any(|part| name.starts_with(part));
        (
            row,
            NAMES.into_iter().filter(named).map(str::to_owned).collect(),
        )
    });
    assert_eq!(shown.collect::<BTreeMap<_, _>>(), BTreeMap::from(listed));
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn checked_in_answers_for_runtimes_match_the_reference() {
    let (jobs, theirs) = (jobs(), theirs());
    let names: BTreeSet<_> = theirs.keys().map(String::as_str).collect();
    assert_eq!(names, NAMES.into_iter().chain([LEFT_OUT]).collect());
    let mut reference = Reference::start();
    let ask = |(name, job): (&String, &String)| {
        let input = input(name, job, &theirs);
        (name.clone(), reference.ask(&input, Runs::to_keep(&input)))
    };
    let answers: BTreeMap<String, Answers> = jobs.iter().map(ask).collect();
    answers::agree(ANSWERS, &jobs, &answers);
}

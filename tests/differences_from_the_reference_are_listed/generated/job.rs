//! TrainJobs.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{
    Generator, fields, list, one_of,
    parts::{labels, scalar, word},
    pod::{self, env, resources},
};

/// Generates a TrainJob without its runtime.
pub(super) fn job(generator: &Generator) -> BoxedStrategy<Value> {
    let spec = fields(vec![
        (
            "suspend",
            0.3,
            prop::bool::ANY.prop_map(Value::from).boxed(),
        ),
        ("trainer", 0.85, trainer(generator)),
        ("initializer", 0.15, initializer()),
        ("runtimePatches", 0.4, patches(generator.patched)),
        (
            "managedBy",
            0.1,
            word(&["trainer.kubeflow.org/trainjob-controller"]),
        ),
        ("activeDeadlineSeconds", 0.1, scalar(60..90)),
        ("podTemplateOverrides", 0.03, overrides()),
        ("labels", 0.02, labels()),
    ]);
    // The longest is too long for some runtimes.
    let name = prop_oneof![30 => Just("bert"), 1 => Just("a-name-that-is-too-long-for-the-names-of-its-pods-to-fit")];
    (name, prop::option::weighted(0.2, labels()), spec)
        .prop_map(|(name, labels, spec)| {
            let mut metadata = json!({"name": name, "namespace": "ml"});
            if let Some(labels) = labels {
                metadata["labels"] = labels;
            }
            json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec})
        })
        .boxed()
}

/// Removes the initializers of a TrainJob for which its runtime has no replicated job, because they are refused.
pub(super) fn remove_unknown_initializers(job: &mut Value, runtime: &Value) {
    let jobs = &runtime["spec"]["template"]["spec"]["replicatedJobs"];
    let has = |step: &str| {
        let mut jobs = jobs.as_array().into_iter().flatten();
        jobs.any(|job| job["name"] == format!("{step}-initializer"))
    };
    let initializers = job.pointer_mut("/spec/initializer");
    if let Some(initializers) = initializers.and_then(Value::as_object_mut) {
        initializers.retain(|step, _| has(step));
    }
}

/// Generates a number from 1, and sometimes 0.
fn count(end: i64) -> BoxedStrategy<Value> {
    prop_oneof![40 => 1..end, 1 => 0i64..1]
        .prop_map(Value::from)
        .boxed()
}

fn trainer(generator: &Generator) -> BoxedStrategy<Value> {
    const ENV: &[&str] = &["A", "B", "EPOCHS", "NCCL_DEBUG", "OMP_NUM_THREADS"];
    let reserved = prop::sample::select(generator.reserved_env);
    let env = prop_oneof![
        40 => env(ENV),
        1 => reserved.prop_map(|name| json!([{"name": name, "value": "9"}])),
    ];
    let processes = prop_oneof![30 => count(generator.most_processes), 1 => word(&["auto", "4"])];
    fields(vec![
        (
            "image",
            0.5,
            prop_oneof![20 => word(&["registry.example.com/bert:7"]), 1 => word(&[""])].boxed(),
        ),
        (
            "command",
            0.5,
            one_of(vec![
                json!(["torchrun", "train.py"]),
                json!(["python", "a.py"]),
                json!([]),
            ]),
        ),
        ("args", 0.3, one_of(vec![json!(["--lr", "0.1"]), json!([])])),
        ("env", 0.4, env.boxed()),
        ("numNodes", 0.6, count(6)),
        ("numProcPerNode", 0.3, processes.boxed()),
        ("resourcesPerNode", 0.4, resources()),
    ])
}

fn initializer() -> BoxedStrategy<Value> {
    let one = || {
        fields(vec![
            (
                "storageUri",
                0.8,
                word(&["hf://org/name", "s3://bucket/path"]),
            ),
            ("env", 0.4, env(&["A", "TOKEN", "STORAGE_URI"])),
            ("secretRef", 0.4, Just(json!({"name": "hub"})).boxed()),
        ])
    };
    fields(vec![("dataset", 0.7, one()), ("model", 0.7, one())])
}

fn patches(further: &'static [&'static str]) -> BoxedStrategy<Value> {
    let manager = |name: &'static str| {
        patch(further)
            .prop_map(move |spec| json!({"manager": name, "trainingRuntimeSpec": spec}))
            .boxed()
    };
    list(vec![
        (0.8, manager("example.com/team")),
        (0.3, manager("kueue.x-k8s.io/manager")),
        (0.02, manager("me")),
    ])
}

fn patch(further: &'static [&'static str]) -> BoxedStrategy<Value> {
    let metadata = || {
        fields(vec![
            ("labels", 0.6, labels()),
            ("annotations", 0.4, labels()),
        ])
    };
    let pod = fields(vec![
        ("metadata", 0.3, metadata()),
        ("spec", 0.9, pod::of_patch()),
    ]);
    let template = fields(vec![
        ("metadata", 0.2, metadata()),
        (
            "spec",
            0.95,
            pod.prop_map(|template| json!({"template": template}))
                .boxed(),
        ),
    ]);
    let job = |name: &'static str| {
        template
            .clone()
            .prop_map(move |template| json!({"name": name, "template": template}))
            .boxed()
    };
    let mut jobs = vec![
        (0.95, job("node")),
        (0.1, job("dataset-initializer")),
        (0.02, job("nobody")),
    ];
    jobs.extend(further.iter().map(|name| (0.5, job(name))));
    let jobs = list(jobs);
    fields(vec![
        ("metadata", 0.2, metadata()),
        (
            "spec",
            0.9,
            jobs.prop_map(|jobs| json!({"replicatedJobs": jobs}))
                .boxed(),
        ),
    ])
    .prop_map(|template| json!({"template": template}))
    .boxed()
}

/// Generates overrides of earlier releases.
fn overrides() -> BoxedStrategy<Value> {
    pod::of_patch()
        .prop_map(|spec| json!([{"targetJobs": [{"name": "node"}], "spec": spec}]))
        .boxed()
}

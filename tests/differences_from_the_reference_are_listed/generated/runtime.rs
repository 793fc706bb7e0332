//! Runtimes.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{
    fields, list, one_of,
    parts::{labels, scalar, word},
    pod,
};

const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Generates a runtime of either kind whose trainer is one replicated job, with or without an `mlPolicy` that has this key.
pub(crate) fn with_policy(
    key: &'static str,
    weight: f64,
    policy: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    let policy = fields(vec![("numNodes", 0.6, nodes()), (key, weight, policy)]);
    let policy = prop_oneof![
        7 => policy.prop_map(Some),
        2 => Just(None),
        1 => Just(Some(json!({}))),
    ];
    runtime(policy.boxed(), jobs_of_trainer())
}

/// Generates a runtime of either kind.
pub(crate) fn runtime(
    policy: BoxedStrategy<Option<Value>>,
    jobs: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    (
        prop::bool::weighted(0.8),
        policy,
        template(jobs),
        prop::bool::weighted(0.03),
    )
        .prop_map(|(is_cluster, policy, template, is_deprecated)| {
            let mut runtime = json!({
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": if is_cluster { "ClusterTrainingRuntime" } else { "TrainingRuntime" },
                "metadata": {"name": "runtime"},
                "spec": {"template": template},
            });
            if let Some(policy) = policy {
                runtime["spec"]["mlPolicy"] = policy;
            }
            if is_deprecated {
                runtime["metadata"]["labels"] =
                    json!({"trainer.kubeflow.org/support": "deprecated"});
            }
            if !is_cluster {
                runtime["metadata"]["namespace"] = "ml".into();
            }
            runtime
        })
        .boxed()
}

/// Returns a TrainJob's reference to the runtime.
pub(super) fn reference(runtime: &Value) -> Value {
    if runtime["kind"] == "ClusterTrainingRuntime" {
        json!({"name": "runtime"})
    } else {
        json!({"name": "runtime", "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"})
    }
}

/// Returns the pod specs of the trainer.
pub(crate) fn trainer_pods(runtime: &mut Value) -> impl Iterator<Item = &mut Value> {
    let jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array_mut();
    let is_trainers = |job: &&mut Value| job["name"] == "node" || job["name"] == "workers";
    let jobs = jobs.into_iter().flatten().filter(is_trainers);
    jobs.map(|job| &mut job["template"]["spec"]["template"]["spec"])
}

/// Generates a number of nodes, and sometimes 0 or less.
pub(crate) fn nodes() -> BoxedStrategy<Value> {
    let nodes = prop_oneof![30 => 1..5, 1 => 0..1, 1 => -1..0];
    nodes.prop_map(Value::from).boxed()
}

fn template(jobs: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let spec = fields(vec![
        (
            "network",
            0.15,
            one_of(vec![
                json!({"subdomain": "mesh"}),
                json!({"enableDNSHostnames": true}),
                json!({"enableDNSHostnames": false}),
                json!({"publishNotReadyAddresses": true}),
            ]),
        ),
        (
            "failurePolicy",
            0.15,
            Just(json!({"maxRestarts": 3})).boxed(),
        ),
        ("ttlSecondsAfterFinished", 0.1, scalar(60..90)),
        (
            "startupPolicy",
            0.1,
            Just(json!({"startupPolicyOrder": "InOrder"})).boxed(),
        ),
    ]);
    let metadata = fields(vec![
        ("labels", 0.5, labels()),
        ("annotations", 0.5, labels()),
    ]);
    (spec, prop::option::weighted(0.2, metadata), jobs)
        .prop_map(|(mut spec, metadata, jobs)| {
            spec["replicatedJobs"] = jobs;
            if spec["startupPolicy"].is_object() {
                remove_dependencies(&mut spec);
            }
            match metadata {
                Some(metadata) => json!({"metadata": metadata, "spec": spec}),
                None => json!({"spec": spec}),
            }
        })
        .boxed()
}

/// Removes the dependencies of replicated jobs, which JobSet does not allow beside a startup policy.
fn remove_dependencies(spec: &mut Value) {
    let jobs = spec["replicatedJobs"].as_array_mut();
    let jobs = jobs.into_iter().flatten().filter_map(Value::as_object_mut);
    jobs.for_each(|job| drop(job.remove("dependsOn")));
}

fn jobs_of_trainer() -> BoxedStrategy<Value> {
    let trainer = prop_oneof![9 => Just("node"), 1 => Just("workers")]
        .prop_flat_map(|name| replicated_job(name, "node", Some("trainer")))
        .boxed();
    let initializer = |name| replicated_job(name, name, Some(name));
    let observer = replicated_job("observer", "observer", None);
    (
        list(vec![
            (0.2, initializer("dataset-initializer")),
            (0.2, initializer("model-initializer")),
        ]),
        trainer,
        prop::option::weighted(0.15, observer),
    )
        .prop_map(|(initializers, trainer, observer)| {
            let mut jobs = initializers.as_array().cloned().unwrap_or_default();
            let mut trainer = trainer;
            let after = jobs
                .iter()
                .map(|job| json!({"name": job["name"], "status": "Complete"}));
            trainer["dependsOn"] = after.collect();
            jobs.push(trainer);
            jobs.extend(observer);
            Value::from(jobs)
        })
        .boxed()
}

/// Generates a replicated job with this container, and with the label of a step.
pub(crate) fn replicated_job(
    name: &'static str,
    container: &'static str,
    step: Option<&'static str>,
) -> BoxedStrategy<Value> {
    let counts = fields(vec![
        ("parallelism", 0.2, scalar(1..4)),
        ("completions", 0.15, scalar(1..4)),
        ("backoffLimit", 0.2, scalar(0..3)),
        ("completionMode", 0.1, word(&["Indexed", "NonIndexed"])),
        ("podFailurePolicy", 0.05, Just(json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})).boxed()),
    ]);
    let of_job = fields(vec![(
        "replicas",
        0.3,
        prop_oneof![15 => Just(json!(1)), 1 => Just(json!(2))].boxed(),
    )]);
    let metadata = fields(vec![
        ("labels", 0.5, labels()),
        (
            "annotations",
            0.5,
            word(&["x"])
                .prop_map(|value| json!({"lab.example.com/a": value}))
                .boxed(),
        ),
    ]);
    // The position of the step: nearly always the Job; otherwise the pod, or absent.
    let place = prop_oneof![18 => Just(0), 1 => Just(1), 1 => Just(2)];
    (of_job, counts, metadata, pod::of_runtime(container), place)
        .prop_map(move |(mut job, mut spec, metadata, mut pod, place)| {
            if step.is_some_and(|step| step != "trainer") {
                let containers = pod["containers"].as_array_mut().into_iter().flatten();
                let own = containers.filter(|own| own["name"] == container);
                own.for_each(|own| {
                    own["volumeMounts"] =
                        json!([{"name": "initializer", "mountPath": "/workspace"}])
                });
            }
            spec["template"] = json!({"metadata": metadata, "spec": pod});
            let mut template = json!({"spec": spec});
            if let Some(step) = step {
                match place {
                    0 => template["metadata"] = json!({"labels": {STEP: step}}),
                    1 => template["spec"]["template"]["metadata"]["labels"][STEP] = step.into(),
                    _ => {}
                }
            }
            job["name"] = name.into();
            job["template"] = template;
            job
        })
        .boxed()
}

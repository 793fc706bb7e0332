//! Runtimes.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{
    Framework, fields, flux, list, one_of,
    parts::{labels, scalar, word},
    pod,
};

const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Generates a runtime of either kind.
pub(super) fn runtime(framework: Framework) -> BoxedStrategy<Value> {
    if let Framework::Coscheduling | Framework::Volcano = framework {
        // The order of the pods differs between these two.
        return prop_oneof![
            2 => runtime(Framework::Torch),
            1 => runtime(Framework::Mpi),
        ]
        .boxed();
    }
    let policy = match framework {
        Framework::Mpi => policy_of_mpi().prop_map(Some).boxed(),
        _ => prop_oneof![
            7 => policy(framework).prop_map(Some),
            2 => Just(None),
            1 => Just(Some(json!({}))),
        ]
        .boxed(),
    };
    (
        prop::bool::weighted(0.8),
        policy,
        template(framework),
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
pub(super) fn trainer_pods(runtime: &mut Value) -> impl Iterator<Item = &mut Value> {
    let jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array_mut();
    let is_trainers = |job: &&mut Value| job["name"] == "node" || job["name"] == "workers";
    let jobs = jobs.into_iter().flatten().filter(is_trainers);
    jobs.map(|job| &mut job["template"]["spec"]["template"]["spec"])
}

fn policy(framework: Framework) -> BoxedStrategy<Value> {
    let targets = one_of(vec![
        json!([{"jobName": "node", "containerNames": ["logger"]}]),
        json!([{"jobName": "node", "containerNames": ["prepare"]}]),
        json!([{"jobName": "observer", "containerNames": ["observer"]}]),
    ]);
    let torch = fields(vec![
        (
            "numProcPerNode",
            0.07,
            one_of(vec![json!(4), json!("auto"), json!("cpu"), json!("gpu")]),
        ),
        (
            "envInjection",
            0.1,
            targets
                .prop_map(|targets| json!({"targets": targets}))
                .boxed(),
        ),
    ]);
    let framework = match framework {
        Framework::Flux => ("flux", 0.9, flux::policy()),
        Framework::Jax => ("jax", 0.9, Just(json!({})).boxed()),
        Framework::Xgboost => ("xgboost", 0.9, Just(json!({})).boxed()),
        _ => ("torch", 0.85, torch),
    };
    fields(vec![("numNodes", 0.6, nodes()), framework])
}

fn nodes() -> BoxedStrategy<Value> {
    let nodes = prop_oneof![30 => 1..5, 1 => 0..1, 1 => -1..0];
    nodes.prop_map(Value::from).boxed()
}

fn policy_of_mpi() -> BoxedStrategy<Value> {
    let implementations = ["OpenMPI"; 12].into_iter().chain(["", "Intel", "MPICH"]);
    let mpi = fields(vec![
        (
            "numProcPerNode",
            0.3,
            one_of(vec![json!(1), json!(1), json!(2), json!(4)]),
        ),
        (
            "mpiImplementation",
            0.5,
            one_of(implementations.map(Value::from).collect()),
        ),
        (
            "sshAuthMountPath",
            0.6,
            word(&["/home/mpiuser/.ssh", "/home/mpiuser/.ssh", "/root/.ssh"]),
        ),
        (
            "runLauncherAsNode",
            0.7,
            prop::bool::ANY.prop_map(Value::from).boxed(),
        ),
    ]);
    (fields(vec![("numNodes", 0.5, nodes())]), mpi)
        .prop_map(|(mut policy, mpi)| {
            policy["mpi"] = mpi;
            policy
        })
        .boxed()
}

fn template(framework: Framework) -> BoxedStrategy<Value> {
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
    (
        spec,
        prop::option::weighted(0.2, metadata),
        replicated_jobs(framework),
    )
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

fn replicated_jobs(framework: Framework) -> BoxedStrategy<Value> {
    match framework {
        Framework::Mpi => jobs_of_mpi(),
        _ => jobs_of_trainer(),
    }
}

/// Generates a launcher after its nodes or before them.
fn jobs_of_mpi() -> BoxedStrategy<Value> {
    let launcher = prop_oneof![
        24 => replicated_job("launcher", "node", Some("trainer")),
        1 => replicated_job("starter", "node", Some("trainer")),
    ];
    let nodes = prop_oneof![
        24 => replicated_job("node", "node", None),
        1 => replicated_job("node", "worker", None),
    ];
    let initializer = replicated_job(
        "dataset-initializer",
        "dataset-initializer",
        Some("dataset-initializer"),
    );
    (
        prop::option::weighted(0.15, initializer),
        nodes,
        launcher,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(initializer, nodes, mut launcher, is_last, has_counts)| {
            let counts = launcher["template"]["spec"].as_object_mut();
            if let Some(counts) = counts.filter(|_| !has_counts) {
                counts.remove("parallelism");
                counts.remove("completions");
            }
            if is_last {
                launcher["dependsOn"] = json!([{"name": "node", "status": "Ready"}]);
            }
            let both = if is_last {
                [nodes, launcher]
            } else {
                [launcher, nodes]
            };
            initializer.into_iter().chain(both).collect()
        })
        .boxed()
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

fn replicated_job(
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

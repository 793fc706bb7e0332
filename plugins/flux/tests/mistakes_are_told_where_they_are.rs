//! What no Flux instance can be made of is refused with the field where it can be mended, all of it at once.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use trainyard_model::plugin::Settings;
use trainyard_plugin_flux::PLUGIN;
use trainyard_sdk::mock::MockJob;

use crate::common::{errors, job, of_node};

const POD: &str = "spec.template.spec.replicatedJobs[node].template.spec.template.spec";

fn assert_told(job: MockJob, expected: &[(&str, &str)]) {
    let errors = errors(job);
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, (field, problem)) in errors.iter().zip(expected) {
        let told = error
            .strip_prefix(field)
            .and_then(|rest| rest.strip_prefix(": "));
        assert!(told.is_some_and(|told| told.contains(problem)), "{error}");
    }
}

#[test]
fn more_tasks_than_devices() {
    let many = |job: MockJob| job.processes_per_node(8);
    let gpus = || of_node(|c| c.limit("nvidia.com/gpu", "4"));
    assert_told(
        many(gpus()).spec(json!({"trainer": {"numProcPerNode": 8}})),
        &[(
            "spec.trainer.numProcPerNode",
            "is 8, and a node has 4 accelerators",
        )],
    );
    assert_told(
        many(gpus()),
        &[("spec.mlPolicy.flux.numProcPerNode", "give at most 4")],
    );
    assert_told(
        many(job(|set| set.claimed_devices("gpu", Some(2)), |c| c)),
        &[("spec.mlPolicy.flux.numProcPerNode", "2 accelerators")],
    );
}

#[test]
fn no_command() {
    assert_told(
        of_node(|c| c.train_job_command(&[])),
        &[("spec.trainer.command", "`sleep infinity`")],
    );
    let none = MockJob::new("lammps").settings(Settings::built_in());
    let none = none.pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.args(&["-in"]))
    });
    assert_told(
        none,
        &[("spec.trainer.command", "can't know the image's own")],
    );
}

#[test]
fn env_vars_that_would_be_something_else_in_a_file() {
    let job = of_node(|c| {
        c.env("FLUX_QUEUE_POLICY", "fcfs\"\n[exec]")
            .train_job_env("FLUX_NETWORK_DEVICE", "$(id)")
            .train_job_env("FLUX_VIEW_IMAGE", "an image")
    });
    assert_told(
        job,
        &[
            ("spec.trainer.env[FLUX_VIEW_IMAGE]", "is `an image`"),
            ("spec.trainer.env[FLUX_NETWORK_DEVICE]", "is `$(id)`"),
            (
                &format!("{POD}.containers[node].env[FLUX_QUEUE_POLICY]"),
                "must be a queue policy",
            ),
        ],
    );
    let source = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    assert_told(
        of_node(|c| c.env_source("FLUX_NETWORK_DEVICE", source)),
        &[(
            &format!("{POD}.containers[node].env[FLUX_NETWORK_DEVICE]"),
            "has a source instead of a value",
        )],
    );
    let device =
        |device: &str| errors(of_node(|c| c.env("FLUX_NETWORK_DEVICE", device))).is_empty();
    assert!(device("bond0.100") && !device("@hosts@") && !device("a-name-of-sixteen"));
}

#[test]
fn a_runtime_that_no_instance_can_run_in() {
    assert_told(
        job(|set| set.raw("setHostnameAsFQDN", json!(true)), |c| c),
        &[(&format!("{POD}.setHostnameAsFQDN"), "must not be true")],
    );
    let empty = json!({"emptyDir": {}});
    let taken = job(
        |set| {
            set.container("flux-installer", |c| c)
                .volume("flux-curve", empty.clone())
                .volume("shared-memory", empty)
        },
        |c| c.train_job_command(&[]),
    );
    assert_told(
        taken,
        &[
            ("spec.trainer.command", "is required"),
            (
                &format!("{POD}.containers[flux-installer].name"),
                "is reserved",
            ),
            (&format!("{POD}.volumes[flux-curve].name"), "is reserved"),
            (&format!("{POD}.volumes[shared-memory].name"), "is reserved"),
        ],
    );
}

#[test]
fn a_runtime_without_the_trainers_container() {
    let without = [
        MockJob::new("a").pod_set("node", |set| set.container("node", |c| c)),
        MockJob::new("a").pod_set("node", |set| {
            set.ancestor("trainer").container("main", |c| c)
        }),
    ];
    for job in without {
        let error = job
            .settings(Settings::built_in())
            .transform(&PLUGIN)
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(
                "flux needs a container `node` in a replicated job with the trainer label"
            ),
            "{error}"
        );
        assert!(
            error.contains("spec.template.spec.replicatedJobs"),
            "{error}"
        );
    }
}

#[test]
fn what_is_refused_overwrites_nothing() {
    let empty = json!({"emptyDir": {}});
    let refused = job(
        |set| set.volume("shared-memory", empty),
        |c| c.env("FLUX_NETWORK_DEVICE", "a b"),
    );
    let outcome = refused.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.errors().len(), 2);
    assert!(outcome.writes().is_empty());
}

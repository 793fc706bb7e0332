//! TrainJobs and runtimes that cannot become a Flux instance are refused with the field to change, all at once.

use serde_json::json;
use trainyard_plugin_flux::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet};

use crate::common::{errors, job, of_node};

const POD: &str = "spec.template.spec.replicatedJobs[node].template.spec.template.spec";

fn assert_reported(job: MockJob, expected: &[(&str, &str)]) {
    let errors = errors(job);
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, (field, problem)) in errors.iter().zip(expected) {
        let reported = error
            .strip_prefix(field)
            .and_then(|rest| rest.strip_prefix(": "));
        assert!(
            reported.is_some_and(|reported| reported.contains(problem)),
            "{error}"
        );
    }
}

#[test]
fn more_tasks_than_accelerators_are_warned_of() {
    let assert_warned = |job: MockJob, field: &str, accelerators: &str| {
        let warnings = job.transform(&PLUGIN).unwrap().warnings();
        let expected = format!(
            "{field}: is 8, but a node has {accelerators}, so tasks share them; lower it if each task needs one of its own"
        );
        assert_eq!(warnings, [expected]);
    };
    let many = |job: MockJob| job.processes_per_node(8);
    let gpus = |count: &str| of_node(|c| c.limit("nvidia.com/gpu", count));
    let runtimes = "spec.mlPolicy.flux.numProcPerNode";
    assert_warned(
        many(gpus("4")).spec(json!({"trainer": {"numProcPerNode": 8}})),
        "spec.trainer.numProcPerNode",
        "4 accelerators",
    );
    assert_warned(many(gpus("1")), runtimes, "1 accelerator");
    let claimed = job(|set| set.claimed_devices("gpu", Some(2)), |c| c);
    assert_warned(many(claimed), runtimes, "2 accelerators");
    for unremarkable in [many(gpus("8")), many(of_node(|c| c)), gpus("4")] {
        let warnings = unremarkable.transform(&PLUGIN).unwrap().warnings();
        assert_eq!(warnings, <[String; 0]>::default());
    }
}

#[test]
fn missing_command_is_refused() {
    assert_reported(
        of_node(|c| c.train_job_command(&[])),
        &[("spec.trainer.command", "`sleep infinity`")],
    );
    // `flux run` would read an option.
    for (word, problem) in [
        ("", "an empty word"),
        (" ", "an empty word"),
        ("-n", "found the option `-n`"),
    ] {
        assert_reported(
            of_node(|c| c.train_job_command(&[word, "lmp"])),
            &[("spec.trainer.command", problem)],
        );
    }
    let none = MockJob::new("lammps").all_granted();
    let none = none.pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.args(&["-in"]))
    });
    assert_reported(
        none,
        &[(
            "spec.trainer.command",
            "cannot use the image's default command",
        )],
    );
}

#[test]
fn env_vars_that_would_break_a_file_are_refused() {
    let job = of_node(|c| {
        c.env("FLUX_QUEUE_POLICY", "fcfs\"\n[exec]")
            .train_job_env("FLUX_NETWORK_DEVICE", "$(id)")
            .train_job_env("FLUX_VIEW_IMAGE", "an image")
    });
    assert_reported(
        job,
        &[
            ("spec.trainer.env[FLUX_VIEW_IMAGE]", "found `an image`"),
            ("spec.trainer.env[FLUX_NETWORK_DEVICE]", "found `$(id)`"),
            (
                &format!("{POD}.containers[node].env[FLUX_QUEUE_POLICY]"),
                "must be a queue policy",
            ),
        ],
    );
    let source = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    assert_reported(
        of_node(|c| c.env_source("FLUX_NETWORK_DEVICE", source)),
        &[(
            &format!("{POD}.containers[node].env[FLUX_NETWORK_DEVICE]"),
            "`valueFrom` is not supported",
        )],
    );
    for timeout in ["", "soon", "-1s", "1 s", ".5s", "1.", "5w", "1.2.3s"] {
        let reported = errors(of_node(|c| c.env("FLUX_EXIT_TIMEOUT", timeout)));
        assert!(
            reported.len() == 1 && reported[0].contains("such as `30s`"),
            "{timeout}: {reported:?}"
        );
    }
    let device =
        |device: &str| errors(of_node(|c| c.env("FLUX_NETWORK_DEVICE", device))).is_empty();
    assert!(device("bond0.100") && !device("@hosts@") && !device("a-name-of-sixteen"));
}

#[test]
fn unsuitable_runtime_is_refused() {
    assert_reported(
        job(|set| set.raw("setHostnameAsFQDN", json!(true)), |c| c),
        &[(&format!("{POD}.setHostnameAsFQDN"), "must not be true")],
    );
    assert_reported(
        job(|set| set.raw("hostNetwork", json!(true)), |c| c),
        &[(&format!("{POD}.hostNetwork"), "must not be true")],
    );
    let job_spec = POD.strip_suffix(".template.spec").unwrap();
    assert_reported(
        job(|set| set.not_indexed(), |c| c),
        &[(
            &format!("{job_spec}.completionMode"),
            "must not be `NonIndexed`",
        )],
    );
    let names = "spec.template.spec.network.enableDNSHostnames";
    assert_reported(
        of_node(|c| c).without_host_names(),
        &[(names, "must not be false")],
    );
    // One broker looks for no other.
    assert_reported(job(|set| set.count(1), |c| c).without_host_names(), &[]);
    let beside =
        |set: MockPodSet| set.init_container("flux-installer", |c| c.restart_policy("Always"));
    assert_reported(
        job(beside, |c| c),
        &[(
            &format!("{POD}.initContainers[flux-installer].restartPolicy"),
            "must not be `Always`",
        )],
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
    assert_reported(
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
fn installer_with_unknown_user_is_warned_of() {
    let warnings = |set: fn(MockPodSet) -> MockPodSet| {
        let outcome = job(set, |c| c).transform(&PLUGIN).unwrap();
        outcome.warnings()
    };
    let reported = warnings(|set| set.raw("securityContext/runAsNonRoot", json!(true)));
    let field = format!("{POD}.securityContext.runAsNonRoot: ");
    assert!(
        reported.len() == 1
            && reported[0].starts_with(&field)
            && reported[0].contains("cannot start"),
        "{reported:?}"
    );
    let of_node = |c: MockContainer| c.raw("securityContext/runAsNonRoot", json!(true));
    let reported = job(|set| set, of_node)
        .transform(&PLUGIN)
        .unwrap()
        .warnings();
    let field = format!("{POD}.containers[node].securityContext.runAsNonRoot: ");
    assert!(
        reported.len() == 1 && reported[0].starts_with(&field),
        "{reported:?}"
    );
    for with_user in [
        (|set| set) as fn(MockPodSet) -> MockPodSet,
        |set| {
            set.raw("securityContext/runAsNonRoot", json!(true))
                .raw("securityContext/runAsUser", json!(1001))
        },
        |set| {
            set.raw("securityContext/runAsNonRoot", json!(true))
                .init_container("flux-installer", |c| {
                    c.raw("securityContext/runAsUser", json!(1001))
                })
        },
    ] {
        assert_eq!(warnings(with_user), <[String; 0]>::default());
    }
}

#[test]
fn architecture_without_a_default_image_is_warned_of() {
    let warnings = |node: fn(MockContainer) -> MockContainer| {
        let job = job(|set| set.node_selector("kubernetes.io/arch", "s390x"), node);
        job.transform(&PLUGIN).unwrap().warnings()
    };
    let reported = warnings(|c| c);
    let field = format!("{POD}.nodeSelector[kubernetes.io/arch]: ");
    assert!(
        reported.len() == 1 && reported[0].starts_with(&field) && reported[0].contains("`s390x`"),
        "{reported:?}"
    );
    let with_image = |c: MockContainer| c.env("FLUX_VIEW_IMAGE", "own:1");
    assert_eq!(warnings(with_image), <[String; 0]>::default());
}

#[test]
fn runtime_without_the_trainer_container_is_refused() {
    let without = [
        MockJob::new("a").pod_set("node", |set| set.container("node", |c| c)),
        MockJob::new("a").pod_set("node", |set| {
            set.ancestor("trainer").container("main", |c| c)
        }),
    ];
    for job in without {
        let error = job.all_granted().transform(&PLUGIN).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(
                "flux needs a container `node` in a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`"
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
fn refused_train_job_is_not_written() {
    let empty = json!({"emptyDir": {}});
    let refused = job(
        |set| set.volume("shared-memory", empty),
        |c| c.env("FLUX_NETWORK_DEVICE", "a b"),
    );
    let outcome = refused.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.errors().len(), 2);
    assert!(outcome.writes().is_empty());
}

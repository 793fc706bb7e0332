//! Mistakes are reported with their field, all at once.

use serde_json::json;
use trainyard_plugin_mpi::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet};

use crate::common::{as_node, errors, gpus, job};

fn without_pods() -> MockJob {
    MockJob::new("llm").all_granted()
}

#[test]
fn runtime_without_the_replicated_jobs_is_refused() {
    let none = "spec.template.spec.replicatedJobs: mpi needs a replicated job";
    let found = errors(without_pods().nodes(2).pod_set("trainer", |set| {
        set.ancestor("trainer").container("node", |c| c)
    }));
    assert_eq!(
        found,
        [
            format!("{none} `launcher`, whose container `node` runs mpirun; add it to the runtime"),
            format!(
                "{none} `node`, whose container `node` runs the processes that mpirun starts; add it to the runtime"
            ),
        ]
    );
    let alone = without_pods()
        .nodes(2)
        .pod_set("launcher", |set| set.container("node", |c| c));
    let found = errors(alone.config(json!({"runLauncherAsNode": true})));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn replicated_job_without_its_container_is_refused() {
    let found = errors(
        without_pods()
            .pod_set("launcher", |set| set.container("mpi", |c| c))
            .pod_set("node", |set| {
                set.init_container("node", |c| c).container("worker", |c| c)
            }),
    );
    let path = |name| {
        format!("spec.template.spec.replicatedJobs[{name}].template.spec.template.spec.containers")
    };
    assert_eq!(
        found,
        [
            format!(
                "{}: must have a container `node`, which runs mpirun",
                path("launcher")
            ),
            format!(
                "{}: must have a container `node`, which runs the processes that mpirun starts",
                path("node")
            ),
        ]
    );
}

#[test]
fn trainer_without_its_container_is_left_to_the_host() {
    let trainer = without_pods()
        .pod_set("launcher", |set| {
            set.ancestor("trainer").container("mpi", |c| c)
        })
        .pod_set("node", |set| set.container("node", |c| c));
    assert_eq!(errors(trainer), [""; 0]);
}

#[test]
fn counts_that_would_run_mpirun_twice_are_refused() {
    let job = without_pods()
        .nodes(2)
        .pod_set("node", |set| set.replicas(2).container("node", |c| c))
        .pod_set("launcher", |set| set.count(2).container("node", |c| c));
    assert_eq!(
        errors(job),
        [
            "spec.template.spec.replicatedJobs[node].replicas: must be 1; found 2; set the number of pods with `numNodes`",
            "spec.template.spec.replicatedJobs[launcher].template.spec.parallelism: must be 1, because mpirun runs in one pod; found 2; remove it",
        ]
    );
    let none = without_pods()
        .nodes(2)
        .pod_set("node", |set| set.replicas(0).container("node", |c| c))
        .pod_set("launcher", |set| set.container("node", |c| c));
    let found = errors(none.config(json!({"runLauncherAsNode": true})));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn blank_command_is_refused() {
    let blank = "must begin with the name of a program; found an empty word; set it to a command such as `[mpirun, python, train.py]`, or remove it to use the runtime's";
    let of_train_job = job(|c| c.command(&["mpirun"]).train_job_command(&[""]));
    let of_train_job = of_train_job.spec(json!({"trainer": {"command": [""]}}));
    assert_eq!(
        errors(of_train_job),
        [format!("spec.trainer.command: {blank}")]
    );
    let path = "spec.template.spec.replicatedJobs[launcher].template.spec.template.spec.containers[node].command";
    let of_runtime = job(|c| c.command(&[" "]));
    assert_eq!(errors(of_runtime), [format!("{path}: {blank}")]);
    // The image's own entry point runs.
    assert_eq!(errors(job(|c| c)), [""; 0]);
}

#[test]
fn empty_command_gets_a_warning() {
    let with = |command: &[&str]| {
        let job = job(|c| c.train_job_command(command));
        let job = job.spec(json!({"trainer": {"command": command}}));
        let outcome = job.transform(&PLUGIN).unwrap();
        assert_eq!(outcome.errors(), [""; 0]);
        outcome.warnings()
    };
    assert_eq!(with(&["mpirun"]), [""; 0]);
    let cleared = "spec.trainer.command: is empty, so the launcher runs the entry point of its image, which has to start mpirun; remove it to use the runtime's command";
    assert_eq!(with(&[]), [cleared]);
}

#[test]
fn unusable_mount_path_is_refused() {
    for (path, problem) in [
        ("root/.ssh", "is not an absolute path"),
        (
            "/root/a:b",
            "contains a `:`, which is not allowed in a mount path",
        ),
        ("/etc/mpi/", "is where the launcher mounts the hostfile"),
        ("/etc//mpi", "is where the launcher mounts the hostfile"),
        ("/etc/mpi/.", "is where the launcher mounts the hostfile"),
        (
            "/a/../etc/mpi/.ssh",
            "is where the launcher mounts the hostfile",
        ),
        ("/home/../", "is the root of the file system"),
    ] {
        assert_eq!(
            errors(job(gpus).config(json!({"sshAuthMountPath": path}))),
            [format!(
                "spec.mlPolicy.mpi.sshAuthMountPath: `{path}` {problem}; set it to the `.ssh` directory of the image's user"
            )]
        );
    }
}

#[test]
fn command_that_would_replace_the_ssh_server_is_refused() {
    let labelled = |spec| {
        without_pods()
            .nodes(2)
            .pod_set("node", |set| {
                set.ancestor("trainer").container("node", |c| c)
            })
            .pod_set("launcher", |set| set.container("node", |c| c))
            .spec(spec)
    };
    const LABEL: &str = "spec.template.spec.replicatedJobs[node].template.metadata.labels[trainer.kubeflow.org/trainjob-ancestor-step]";
    assert_eq!(
        errors(labelled(
            json!({"trainer": {"command": ["mpirun"], "args": ["a"]}})
        )),
        [format!(
            "{LABEL}: must not be on the nodes, because the TrainJob's `command` would replace their SSH server; move the label to the replicated job `launcher`"
        )]
    );
    // The arguments may be meant for the nodes' own command.
    let with_args = labelled(json!({"trainer": {"args": ["-De"]}}));
    let outcome = with_args.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.errors(), [""; 0]);
    assert_eq!(
        outcome.warnings(),
        [format!(
            "{LABEL}: is on the nodes, so the TrainJob's `args` are those of their SSH server; move the label to the replicated job `launcher` if they belong to the command that starts mpirun"
        )]
    );
    // The runtime's own commands run.
    let of_the_runtime = labelled(json!({"trainer": {"numNodes": 2}}));
    let outcome = of_the_runtime.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.errors(), [""; 0]);
    assert_eq!(outcome.warnings(), [""; 0]);
}

#[test]
fn runtime_volumes_with_the_policys_names_are_refused() {
    let volume = |name| {
        job(gpus).pod_set("more", |set| {
            set.container("node", gpus)
                .volume(name, json!({"emptyDir": {}}))
        })
    };
    assert_eq!(errors(volume("mpi-ssh-auth")), [""; 0]);
    let in_set = |set: &'static str, volume: &'static str| {
        let with = move |name: &str, pods: MockPodSet| match name == set {
            true => pods.volume(volume, json!({"emptyDir": {}})),
            false => pods,
        };
        errors(
            without_pods()
                .pod_set("node", |pods| with("node", pods.container("node", gpus)))
                .pod_set("launcher", |pods| {
                    with("launcher", pods.container("node", gpus))
                }),
        )
    };
    let error = |set: &str, volume: &str| {
        format!(
            "spec.template.spec.replicatedJobs[{set}].template.spec.template.spec.volumes[{volume}].name: the volume name `{volume}` is reserved by the MPI plugin; rename the volume"
        )
    };
    for (set, volume) in [
        ("node", "mpi-ssh-auth"),
        ("launcher", "mpi-ssh-auth"),
        ("launcher", "mpi-hostfile"),
    ] {
        assert_eq!(in_set(set, volume), [error(set, volume)]);
    }
    assert_eq!(in_set("node", "mpi-hostfile"), [""; 0]);
}

#[test]
fn pods_without_host_names_are_refused() {
    let of = |implementation: &str, is_node: bool, without_index: &'static str| {
        let index = move |name: &str, set: MockPodSet| match name == without_index {
            true => set.not_indexed(),
            false => set,
        };
        without_pods()
            .nodes(2)
            .pod_set("node", |set| index("node", set.container("node", gpus)))
            .pod_set("launcher", |set| {
                index("launcher", set.container("node", gpus))
            })
            .config(json!({"runLauncherAsNode": is_node, "mpiImplementation": implementation}))
    };
    let no_host_names = "spec.template.spec.network.enableDNSHostnames: must not be false, because mpirun finds the pods by their DNS names";
    assert_eq!(
        errors(of("OpenMPI", false, "").without_host_names()),
        [no_host_names]
    );
    let not_indexed = |set: &str| {
        format!(
            "spec.template.spec.replicatedJobs[{set}].template.spec.completionMode: must not be `NonIndexed`, because mpirun finds the pods by their indexed names"
        )
    };
    assert_eq!(errors(of("OpenMPI", false, "node")), [not_indexed("node")]);
    let launchers = [not_indexed("launcher")];
    assert_eq!(errors(of("OpenMPI", true, "launcher")), launchers);
    assert_eq!(errors(of("MPICH", false, "launcher")), launchers);
    // The daemons of Open MPI call back by address.
    assert_eq!(errors(of("OpenMPI", false, "launcher")), [""; 0]);
    // A launcher that is the only node resolves its own name.
    let alone = without_pods()
        .pod_set("launcher", |set| set.container("node", gpus))
        .config(json!({"runLauncherAsNode": true}));
    assert_eq!(errors(alone.without_host_names()), [""; 0]);
    let with_no_others = without_pods()
        .nodes(1)
        .pod_set("launcher", |set| set.container("node", gpus))
        .pod_set("node", |set| set.replicas(0).container("node", gpus))
        .config(json!({"runLauncherAsNode": true}));
    assert_eq!(errors(with_no_others.without_host_names()), [""; 0]);
}

#[test]
fn launcher_on_the_host_network_gets_a_warning() {
    let warnings = |implementation: &str, is_node: bool| {
        let job = without_pods()
            .nodes(2)
            .pod_set("node", |set| set.container("node", gpus))
            .pod_set("launcher", |set| {
                set.container("node", gpus).raw("hostNetwork", json!(true))
            })
            .config(json!({"runLauncherAsNode": is_node, "mpiImplementation": implementation}));
        let outcome = job.transform(&PLUGIN).unwrap();
        assert_eq!(outcome.errors(), [""; 0]);
        outcome.warnings()
    };
    let path = "spec.template.spec.replicatedJobs[launcher].template.spec.template.spec.hostNetwork: is true on a launcher that is a node;";
    for (implementation, versions) in [("MPICH", "MPICH before 5"), ("Intel", "Intel MPI")] {
        let found = warnings(implementation, true);
        assert_eq!(found.len(), 1);
        let start = format!("{path} {versions} does not recognize");
        assert!(
            found.iter().all(|warning| warning.starts_with(&start)),
            "{found:?}"
        );
        assert_eq!(warnings(implementation, false), [""; 0]);
    }
    assert_eq!(warnings("OpenMPI", true), [""; 0]);
}

#[test]
fn several_processes_without_shared_memory_get_a_warning() {
    let warnings = |job: MockJob| job.transform(&PLUGIN).unwrap().warnings();
    let warning = |name: &str, processes: u32| {
        format!(
            "spec.template.spec.replicatedJobs[{name}].template.spec.template.spec.containers[node].volumeMounts: has no `/dev/shm`, so the {processes} processes of a pod share 64 MiB, which data loaders, NCCL and MPI exceed; mount an `emptyDir` with `medium: Memory` and a `sizeLimit` there"
        )
    };
    let cores = || job(|c| c).processes_per_node(16);
    assert_eq!(warnings(cores()), [warning("node", 16)]);
    let gpu = |c: MockContainer| c.limit("nvidia.com/gpu", "2");
    assert_eq!(
        warnings(as_node(gpu)),
        [warning("node", 2), warning("launcher", 2)]
    );
    assert_eq!(warnings(job(|c| c)), [""; 0]);
    assert_eq!(
        warnings(as_node(|c| gpu(c).mount("dshm", "/dev/shm"))),
        [""; 0]
    );
}

#[test]
fn unknown_implementation_is_refused_by_the_schema() {
    let refused = job(gpus)
        .config(json!({"mpiImplementation": "LAM"}))
        .transform(&PLUGIN);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("mpiImplementation: "), "{error}");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let job = without_pods()
        .nodes(2)
        .pod_set("node", |set| set.replicas(2).container("node", gpus))
        .pod_set("launcher", |set| {
            set.count(2).container("node", |c| c.command(&[""]))
        })
        .config(json!({"sshAuthMountPath": "keys"}));
    assert_eq!(errors(job).len(), 4);
}

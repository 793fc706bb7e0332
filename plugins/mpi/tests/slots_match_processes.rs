//! The hostfile lists the pods that run processes, each with its number of processes.

use serde_json::json;
use trainyard_plugin_mpi::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet};

use crate::common::{as_node, env, gpus, hostfile, job};

const SLOTS: &str = "OMPI_MCA_orte_set_default_slots";

fn slots(job: MockJob) -> String {
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.errors(), [""; 0]);
    env(&outcome, SLOTS).unwrap().as_str().unwrap().to_owned()
}

/// Nodes whose container uses devices of a claim.
fn claimed(count: Option<u32>, node: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("llm")
        .all_granted()
        .pod_set("node", |set| {
            set.container("node", node).claimed_devices("gpu", count)
        })
        .pod_set("launcher", |set| set.container("node", |c| c))
}

#[test]
fn nodes_run_one_process_per_accelerator() {
    assert_eq!(slots(job(gpus)), "2");
    assert_eq!(slots(job(|c| c.request("google.com/tpu", "4"))), "4");
}

#[test]
fn nodes_run_one_process_per_claimed_device() {
    let claimed = |count| claimed(count, |c| c);
    assert_eq!(hostfile(claimed(Some(4))), "llm-node-0-0.llm slots=4\n");
    assert_eq!(hostfile(claimed(None)), "llm-node-0-0.llm slots=1\n");
    assert_eq!(
        hostfile(claimed(None).processes_per_node(8)),
        "llm-node-0-0.llm slots=8\n"
    );
}

#[test]
fn share_of_an_accelerator_runs_one_process() {
    let share = |c: MockContainer| c.limit("nvidia.com/gpumem", "4096");
    assert_eq!(slots(job(share)), "1");
    assert_eq!(slots(job(share).processes_per_node(4)), "4");
    let reason = job(share).transform(&PLUGIN).unwrap();
    assert_eq!(
        reason
            .reason("pod-sets[launcher].volumes[mpi-hostfile]")
            .unwrap(),
        "mpirun starts 1 process in each pod of `node`, since no number is given and it has a share of an accelerator"
    );
}

#[test]
fn processes_that_share_accelerators_cause_a_warning() {
    let warnings = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        assert_eq!(outcome.errors(), [""; 0]);
        outcome.warnings()
    };
    let shared = |found: u32| {
        format!(
            "is {found}, but a pod of replicated job `node` has 2 accelerators, so processes share them; lower it if each process needs one of its own"
        )
    };
    assert_eq!(
        warnings(job(gpus).processes_per_node(4)),
        [format!("spec.mlPolicy.mpi.numProcPerNode: {}", shared(4))]
    );
    let by_train_job = job(gpus)
        .processes_per_node(3)
        .spec(json!({"trainer": {"numProcPerNode": 3}}));
    assert_eq!(
        warnings(by_train_job),
        [format!("spec.trainer.numProcPerNode: {}", shared(3))]
    );
    assert_eq!(warnings(job(gpus).processes_per_node(2)), [""; 0]);
    let on_cpus = job(|c| c.request("cpu", "1").mount("dshm", "/dev/shm"));
    let on_cpus = on_cpus.processes_per_node(8);
    assert_eq!(warnings(on_cpus), [""; 0]);
    let found = warnings(as_node(gpus).processes_per_node(4));
    assert_eq!(found.len(), 2, "each pod set is reported: {found:?}");
    assert_eq!(slots(job(gpus).processes_per_node(4)), "4");
}

#[test]
fn node_without_accelerators_runs_one_process() {
    assert_eq!(slots(job(|c| c.request("cpu", "8"))), "1");
    assert_eq!(slots(job(|c| c)), "1");
}

#[test]
fn explicit_number_is_used() {
    assert_eq!(slots(job(gpus).processes_per_node(1)), "1");
}

#[test]
fn launcher_that_runs_as_node_is_a_host() {
    let in_the_order_of_the_runtime =
        "llm-node-0-0.llm slots=2\nllm-node-0-1.llm slots=2\nllm-launcher-0-0 slots=2\n";
    assert_eq!(hostfile(as_node(gpus)), in_the_order_of_the_runtime);
    let launcher_first = MockJob::new("llm")
        .all_granted()
        .nodes(2)
        .pod_set("launcher", |set| set.container("node", gpus))
        .pod_set("node", |set| set.container("node", gpus))
        .config(json!({"runLauncherAsNode": true}));
    let lines = "llm-launcher-0-0 slots=2\nllm-node-0-0.llm slots=2\n";
    assert_eq!(hostfile(launcher_first), lines);
}

#[test]
fn explain_has_the_number_and_origin_for_each_pod_set() {
    let why = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        outcome
            .reason("pod-sets[launcher].volumes[mpi-hostfile]")
            .unwrap()
    };
    assert_eq!(
        why(job(|c| c)),
        "mpirun starts 1 process in each pod of `node`, since no number is given and it requests no known accelerator"
    );
    assert_eq!(
        why(claimed(Some(0), |c| c)),
        "mpirun starts 1 process in each pod of `node`, since no number is given and none of its devices counts as an accelerator"
    );
    assert_eq!(
        why(claimed(Some(4), |c| c)),
        "mpirun starts 4 processes in each pod of `node`, one for each accelerator, counted from resource-claim/gpu"
    );
    assert_eq!(
        why(claimed(Some(4), gpus)),
        "mpirun starts 2 processes in each pod of `node`, one for each accelerator, counted from resource/nvidia.com/gpu"
    );
    assert_eq!(
        why(job(gpus)),
        "mpirun starts 2 processes in each pod of `node`, one for each accelerator, counted from resource/nvidia.com/gpu"
    );
    assert_eq!(
        why(claimed(None, |c| c)),
        "mpirun starts 1 process in each pod of `node`, since no number is given and the number of devices in its resource claims is not known"
    );
    let given = job(gpus)
        .processes_per_node(1)
        .spec(json!({"trainer": {"numProcPerNode": 1}}));
    assert_eq!(
        why(given),
        "mpirun starts 1 process in each pod of `node`, by spec.trainer.numProcPerNode"
    );
}

/// Its mpirun takes another name for that of another host, and calls it by SSH.
#[test]
fn launcher_that_runs_as_node_has_its_host_name() {
    let line = |raw: &[&str]| {
        let launcher = |set: MockPodSet| {
            let set = set.container("node", gpus);
            let raw = raw.iter();
            raw.fold(set, |set, member| set.raw(member, json!(true)))
        };
        let job = MockJob::new("llm")
            .all_granted()
            .namespace("ml")
            .subdomain("mesh")
            .nodes(2)
            .pod_set("node", |set| set.container("node", gpus))
            .pod_set("launcher", launcher)
            .config(json!({"runLauncherAsNode": true}));
        hostfile(job).lines().last().unwrap().to_owned()
    };
    assert_eq!(line(&[]), "llm-launcher-0-0 slots=2");
    assert_eq!(
        line(&["setHostnameAsFQDN"]),
        "llm-launcher-0-0.mesh.ml.svc.cluster.local slots=2"
    );
    // The machine's name is not known before.
    assert_eq!(line(&["hostNetwork"]), "llm-launcher-0-0.mesh slots=2");
    assert_eq!(
        line(&["hostNetwork", "setHostnameAsFQDN"]),
        "llm-launcher-0-0.mesh slots=2"
    );
}

#[test]
fn dedicated_launcher_is_not_a_host() {
    assert!(!hostfile(job(gpus)).contains("launcher"));
}

/// Pods of the two kinds with resources of their own.
fn uneven(implementation: &str) -> MockJob {
    let gpus = |amount: &'static str| move |c: MockContainer| c.request("nvidia.com/gpu", amount);
    MockJob::new("llm")
        .all_granted()
        .nodes(2)
        .pod_set("node", |set| set.container("node", gpus("8")))
        .pod_set("launcher", |set| set.container("node", gpus("2")))
        .config(json!({"runLauncherAsNode": true, "mpiImplementation": implementation}))
}

#[test]
fn every_pod_set_has_its_own_number() {
    let lines = "llm-node-0-0.llm slots=8\nllm-launcher-0-0 slots=2\n";
    assert_eq!(hostfile(uneven("OpenMPI")), lines);
    assert_eq!(slots(uneven("OpenMPI")), "8");
    let lines = "llm-node-0-0.llm:8\nllm-launcher-0-0:2\n";
    assert_eq!(hostfile(uneven("MPICH")), lines);
}

#[test]
fn intel_mpi_uses_one_number_for_all_hosts() {
    let errors = crate::common::errors(uneven("Intel"));
    assert_eq!(
        errors,
        [
            "spec.trainer.numProcPerNode: is required, because a pod of replicated job `node` can run 8 processes, but a pod of `launcher` only 2, and Intel MPI starts the same number on each host; set a number that fits both"
        ]
    );
    let lines = "llm-node-0-0.llm:2\nllm-launcher-0-0:2\n";
    assert_eq!(hostfile(uneven("Intel").processes_per_node(2)), lines);
}

#[test]
fn launcher_can_be_the_only_node() {
    let without_nodes = |replicas| {
        MockJob::new("llm")
            .all_granted()
            .pod_set("node", |set| set.replicas(replicas).container("node", gpus))
            .pod_set("launcher", |set| set.container("node", gpus))
            .config(json!({"runLauncherAsNode": true}))
    };
    assert_eq!(hostfile(without_nodes(0)), "llm-launcher-0-0 slots=2\n");
    let without_the_job = MockJob::new("llm")
        .all_granted()
        .pod_set("launcher", |set| set.container("node", gpus))
        .config(json!({"runLauncherAsNode": true}));
    assert_eq!(hostfile(without_the_job), "llm-launcher-0-0 slots=2\n");
}

#[test]
fn host_names_include_the_subdomain() {
    let job = job(gpus).subdomain("mesh");
    assert!(hostfile(job).starts_with("llm-node-0-0.mesh slots=2\n"));
}

#[test]
fn thousand_nodes_have_one_line_each() {
    let job = MockJob::new("llm")
        .all_granted()
        .nodes(1000)
        .pod_set("node", |set| set.count(1000).container("node", gpus))
        .pod_set("launcher", |set| set.container("node", |c| c));
    let hostfile = hostfile(job);
    assert_eq!(hostfile.lines().count(), 1000);
    assert!(hostfile.ends_with("llm-node-0-999.llm slots=2\n"));
}

//! Each node has a worker for each of its accelerators, or as many as the TrainJob sets; `explain` shows why.

use serde_json::json;
use trainyard_plugin_xgboost::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet};

const ENV: &str = "pod-sets[node].containers[node].env";

fn nodes(count: u32, build: impl FnOnce(MockPodSet) -> MockPodSet) -> MockJob {
    MockJob::new("higgs")
        .all_granted()
        .nodes(count)
        .pod_set("node", |set| {
            build(set.ancestor("trainer").count(count).backoff_limit(0))
        })
}

fn two(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    nodes(2, |set| set.container("node", container))
}

fn claimed(count: Option<u32>) -> MockJob {
    nodes(2, |set| {
        set.container("node", |c| c).claimed_devices("gpu", count)
    })
}

#[test]
fn number_of_workers_and_its_reason_follow_the_devices() {
    for (job, workers, because) in [
        (
            two(|c| c.request("cpu", "64")),
            "2",
            "2 nodes with 1 worker each: neither the TrainJob nor the runtime gives a number, and a node requests no known accelerator",
        ),
        (
            two(|c| c.limit("nvidia.com/gpu", "4")),
            "8",
            "2 nodes with 4 workers each: the GPUs of a node",
        ),
        (
            two(|c| c.limit("google.com/tpu", "4")),
            "2",
            "2 nodes with 1 worker each: none of a node's accelerators is a GPU, the only ones that XGBoost uses",
        ),
        (
            two(|c| c.limit("nvidia.com/mig-1g.5gb", "3")),
            "2",
            "2 nodes with 1 worker each: none of a node's accelerators is a GPU, the only ones that XGBoost uses",
        ),
        (
            two(|c| {
                c.limit("nvidia.com/gpu", "2")
                    .limit("nvidia.com/mig-1g.5gb", "3")
            }),
            "4",
            "2 nodes with 2 workers each: the GPUs of a node",
        ),
        (
            two(|c| c.limit("nvidia.com/gpumem", "4096")),
            "2",
            "2 nodes with 1 worker each: a node has a share of an accelerator",
        ),
        (
            two(|c| c.limit("nvidia.com/gpu", "4")).processes_per_node(1),
            "2",
            "2 nodes with 1 worker each: the number in the TrainJob",
        ),
        (
            claimed(Some(8)),
            "16",
            "2 nodes with 8 workers each: the accelerators of a node",
        ),
        (
            claimed(Some(0)),
            "2",
            "2 nodes with 1 worker each: neither the TrainJob nor the runtime gives a number, and none of a node's devices counts as an accelerator",
        ),
        (
            claimed(None),
            "2",
            "2 nodes with 1 worker each: the number of devices in a node's resource claims is not known",
        ),
        (
            nodes(1, |set| {
                set.container("node", |c| c.limit("amd.com/gpu", "2"))
            }),
            "2",
            "1 node with 2 workers each: the GPUs of a node",
        ),
    ] {
        let outcome = job.transform(&PLUGIN).unwrap();
        let path = format!("{ENV}[DMLC_NUM_WORKER]");
        assert_eq!(outcome.value(&path), Some(json!(workers)), "{because}");
        assert_eq!(outcome.reason(&path).as_deref(), Some(because));
    }
}

/// The largest numbers that the schemas allow.
#[test]
fn number_of_workers_may_exceed_32_bits() {
    let most = i32::MAX.unsigned_abs();
    let job = nodes(most, |set| set.container("node", |c| c)).processes_per_node(most);
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(
        outcome.value(&format!("{ENV}[DMLC_NUM_WORKER]")),
        Some(json!("4611686014132420609"))
    );
}

#[test]
fn several_workers_that_only_accelerators_request_cause_a_warning() {
    let warnings = |job: MockJob| {
        let mut found = job.transform(&PLUGIN).unwrap().warnings();
        found.retain(|warning| !warning.contains("/dev/shm"));
        found
    };
    let gpus = |amount: &'static str| two(move |c| c.limit("nvidia.com/gpu", amount));
    let warning = "spec.trainer.numProcPerNode: is not set, so the tracker waits for 4 workers on each node, one for each of its accelerators; set it to 4 if the command starts 4 processes with a task ID each, or to 1 if it starts one";
    assert_eq!(warnings(gpus("4")), [warning]);
    assert_eq!(warnings(claimed(Some(4))), [warning]);
    for silent in [gpus("4").processes_per_node(4), gpus("1"), two(|c| c)] {
        assert_eq!(warnings(silent), [""; 0]);
    }
}

#[test]
fn several_mig_slices_cause_a_warning() {
    let warnings = |job: MockJob| job.transform(&PLUGIN).unwrap().warnings();
    let slices = |amount: &'static str| two(move |c| c.limit("nvidia.com/mig-1g.5gb", amount));
    let warning = "spec.trainer.numProcPerNode: is not set, so each node has one worker, which uses one of its 3 MIG slices; request one slice for each node and raise `numNodes`, or set it to 3 if the command starts 3 processes that select their slices with CUDA_VISIBLE_DEVICES";
    assert_eq!(warnings(slices("3")), [warning]);
    assert_eq!(warnings(slices("2")), [warning.replace('3', "2")]);
    for silent in [slices("3").processes_per_node(1), slices("1")] {
        assert_eq!(warnings(silent), [""; 0]);
    }
}

#[test]
fn two_accelerators_of_a_node_cause_a_warning() {
    let gpus = |amount: &'static str| {
        let job = two(move |c| c.limit("nvidia.com/gpu", amount).mount("shm", "/dev/shm"));
        job.transform(&PLUGIN).unwrap().warnings().join("\n")
    };
    let waits = "the tracker waits for 2 workers on each node";
    assert!(gpus("2").contains(waits), "{}", gpus("2"));
    assert_eq!(gpus("1"), "");
}

#[test]
fn task_id_of_a_pod_with_several_workers_is_explained() {
    let because = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        outcome.reason(&format!("{ENV}[DMLC_TASK_ID]")).unwrap()
    };
    assert_eq!(because(two(|c| c)), "the pod's index in its Job");
    assert_eq!(
        because(two(|c| c.limit("nvidia.com/gpu", "4"))),
        "the pod's index in its Job; each of the pod's 4 workers needs an ID of its own"
    );
}

#[test]
fn several_workers_without_shared_memory_cause_a_warning() {
    let warnings = |job: MockJob| {
        let mut found = job.transform(&PLUGIN).unwrap().warnings();
        found.retain(|warning| warning.contains("/dev/shm"));
        found
    };
    let of = |container: fn(MockContainer) -> MockContainer| warnings(two(container));
    assert_eq!(
        of(|c| c.limit("nvidia.com/gpu", "4")),
        [
            "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node].volumeMounts: has no `/dev/shm`, so the 4 processes of a pod share 64 MiB, which data loaders, NCCL and MPI exceed; mount an `emptyDir` with `medium: Memory` and a `sizeLimit` there"
        ]
    );
    assert_eq!(of(|c| c.limit("nvidia.com/gpu", "1")), [""; 0]);
    assert_eq!(
        of(|c| c.limit("nvidia.com/gpu", "4").mount("dshm", "/dev/shm")),
        [""; 0]
    );
    assert_eq!(
        warnings(two(|c| c.limit("nvidia.com/gpu", "4")).processes_per_node(1)),
        [""; 0]
    );
}

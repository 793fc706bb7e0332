//! Warnings of a runtime whose nodes would hang or crash: a node that restarts alone, and several processes without shared memory.

use serde_json::json;
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet};

/// Returns the warnings of a TrainJob that name the field.
fn warnings(
    field: &str,
    nodes: u32,
    pods: impl FnOnce(MockPodSet) -> MockPodSet,
    container: impl FnOnce(MockContainer) -> MockContainer,
) -> Vec<String> {
    let job = MockJob::new("bert").all_granted().nodes(nodes);
    let job = job.pod_set("node", |set| {
        pods(set.ancestor("trainer").count(nodes)).container("node", container)
    });
    let mut all = job.transform(&PLUGIN).unwrap().warnings();
    all.retain(|warning| warning.contains(&format!("{field}: ")));
    all
}

#[test]
fn several_nodes_that_restart_alone_cause_a_warning() {
    let of = |nodes, limit: Option<u32>| {
        let pods = |set: MockPodSet| match limit {
            Some(limit) => set.backoff_limit(limit),
            None => set,
        };
        warnings(".template.spec.backoffLimit", nodes, pods, |c| c)
    };
    for (limit, said) in [
        (None, "is not set and defaults to 6, so a node that fails"),
        (Some(3), "is 3, so a node that fails"),
    ] {
        let found = of(2, limit);
        assert!(matches!(&*found, [one] if one.contains(said)), "{found:?}");
    }
    assert_eq!(of(1, None), [""; 0]);
    assert_eq!(of(2, Some(0)), [""; 0]);
    // JobSet requires it if it restarts the containers of all pods in place.
    assert_eq!(of(2, Some(2_147_483_647)), [""; 0]);
}

/// The runtime sets `gpu`, and its nodes have other accelerators alone.
#[test]
fn other_accelerators_count_if_there_is_no_gpu() {
    let job = MockJob::new("llm")
        .all_granted()
        .trainer(1, |c| c.limit("habana.ai/gaudi", "8"));
    let job = job.config(json!({"numProcPerNode": "gpu"}));
    let warnings = job.transform(&PLUGIN).unwrap().warnings().join("\n");
    assert!(
        warnings.contains("so the 8 processes of a pod share 64 MiB"),
        "{warnings}"
    );
}

#[test]
fn several_processes_without_shared_memory_cause_a_warning() {
    let of = |pods: fn(MockPodSet) -> MockPodSet, container: fn(MockContainer) -> MockContainer| {
        warnings(".containers[node].volumeMounts", 1, pods, container)
    };
    let found = of(|set| set, |c| c.limit("nvidia.com/gpu", "8"));
    let said = "has no `/dev/shm`, so the 8 processes of a pod share 64 MiB";
    assert!(matches!(&*found, [one] if one.contains(said)), "{found:?}");
    let found = of(|set| set, |c| c.request("cpu", "2"));
    assert!(
        matches!(&*found, [one] if one.contains("the 2 processes")),
        "{found:?}"
    );
    assert_eq!(of(|set| set, |c| c.limit("nvidia.com/gpu", "1")), [""; 0]);
    // torchrun counts the GPUs alone.
    let found = of(
        |set| set,
        |c| c.limit("nvidia.com/gpu", "2").limit("google.com/tpu", "4"),
    );
    assert!(
        matches!(&*found, [one] if one.contains("the 2 processes")),
        "{found:?}"
    );
    let mounted = of(
        |set| set.volume("dshm", json!({"emptyDir": {"medium": "Memory"}})),
        |c| c.limit("nvidia.com/gpu", "8").mount("dshm", "/dev/shm/"),
    );
    assert_eq!(mounted, [""; 0]);
    let of_the_machine = of(
        |set| set.raw("hostIPC", json!(true)),
        |c| c.limit("nvidia.com/gpu", "8"),
    );
    assert_eq!(of_the_machine, [""; 0]);
}

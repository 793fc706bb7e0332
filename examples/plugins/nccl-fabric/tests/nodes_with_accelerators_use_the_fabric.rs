//! Nodes with accelerators get the devices, networks and settings of both configurations, and what users set stays.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use nccl_fabric::PLUGIN;
use serde_json::{Value, json};
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NETWORKS: &str = "pod-annotations[k8s.v1.cni.cncf.io/networks]";

/// The grants of policy.yaml.
const GRANTS: [&str; 3] = [
    "pod-sets[@nodes].containers[node].limits[$config./devices/resource]",
    "pod-sets[@nodes].containers[node].capabilities[IPC_LOCK]",
    "pod-sets[@nodes].pod-annotations[k8s.v1.cni.cncf.io/networks]",
];

fn config() -> Value {
    json!({
        "devices": {"resource": "rdma/hca", "count": 8},
        "networks": ["fabric/rail-0", "fabric/rail-1"],
        "env": {"NCCL_IB_HCA": "mlx5"},
    })
}

fn gpus(node: MockContainer) -> MockContainer {
    node.limit("nvidia.com/gpu", "8")
}

/// Returns a TrainJob with a node.
fn job(node: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("bert")
        .grants(&GRANTS)
        .config(config())
        .operator_config(json!({"env": {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx4"}}))
        .pod_set("node", |set| set.nodes(true).container("node", node))
}

/// Returns what the plugin wrote to the container.
fn value(outcome: &Outcome, field: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[node].containers[node].{field}"))
}

#[test]
fn nodes_with_gpus_have_devices_networks_and_settings() {
    let outcome = job(gpus).all_phases(&PLUGIN).unwrap();
    assert_eq!(value(&outcome, "limits[rdma/hca]"), Some(json!("8")));
    assert_eq!(
        value(&outcome, "capabilities[IPC_LOCK]"),
        Some(json!("IPC_LOCK"))
    );
    assert_eq!(
        outcome.value(&format!("pod-sets[node].{NETWORKS}")),
        Some(json!("fabric/rail-0,fabric/rail-1"))
    );
    // The runtime's value precedes the operator's.
    assert_eq!(value(&outcome, "env[NCCL_IB_HCA]"), Some(json!("mlx5")));
    assert_eq!(
        value(&outcome, "env[NCCL_SOCKET_IFNAME]"),
        Some(json!("eth0"))
    );
}

#[test]
fn the_file_has_the_settings_of_the_container() {
    let node = |node: MockContainer| {
        gpus(node)
            .env("NCCL_DEBUG", "INFO")
            .env("NCCL_COMM_ID", "$(MASTER):1234")
            .train_job_env("NCCL_SOCKET_IFNAME", "net1")
    };
    let outcome = job(node).all_phases(&PLUGIN).unwrap();
    assert_eq!(value(&outcome, "env[NCCL_SOCKET_IFNAME]"), None);
    let text = outcome.objects()[0].text("nccl.conf").unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "NCCL_DEBUG=INFO",
            "NCCL_IB_HCA=mlx5",
            "NCCL_SOCKET_IFNAME=net1"
        ]
    );
    let mount = value(&outcome, "mounts[/etc/nccl.conf]").unwrap();
    assert_eq!(
        (&mount["name"], &mount["subPath"]),
        (&json!("nccl-fabric"), &json!("nccl.conf"))
    );
}

#[test]
fn what_the_user_set_stays() {
    let node = |node: MockContainer| {
        gpus(node)
            .limit("rdma/hca", "2")
            .mount("own", "/etc/nccl.conf")
            .env("NCCL_IB_HCA", "=mlx5_0")
    };
    let outcome = job(node).all_phases(&PLUGIN).unwrap();
    for field in [
        "limits[rdma/hca]",
        "mounts[/etc/nccl.conf]",
        "env[NCCL_IB_HCA]",
    ] {
        assert_eq!(value(&outcome, field), None, "{field}");
    }
    assert!(outcome.objects().is_empty());
}

#[test]
fn nodes_without_accelerators_and_launchers_are_not_changed() {
    let outcome = job(|node| node)
        .pod_set("launcher", |set| {
            let set = set.ancestor("trainer").nodes(false);
            set.container("node", gpus)
        })
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.writes(), []);
    assert!(outcome.objects().is_empty());
}

#[test]
fn without_configuration_nothing_is_written() {
    let outcome = MockJob::new("bert")
        .grants(&GRANTS)
        .pod_set("node", |set| set.nodes(true).container("node", gpus))
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.writes(), []);
}

#[test]
fn settings_of_other_libraries_are_refused() {
    let job = job(gpus).config(json!({"env": {"PATH": "/tmp"}}));
    let error = job.all_phases(&PLUGIN).unwrap_err().to_string();
    assert!(error.contains("`PATH` must begin with `NCCL_`"), "{error}");
}

//! Beside the MPI policy, the nodes that run the ranks have the fabric, with its settings in a file, and the launcher has neither.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use nccl_fabric::PLUGIN;
use serde_json::{Value, json};
use trainyard_sdk::mock::{MockInput, MockPlugin};

const INPUT: &str = include_str!("mpi.yaml");

/// Returns the YAML with both plugins, and with the grants of policy.yaml.
fn input(yaml: &str) -> MockInput {
    let fabric = MockPlugin::new(&PLUGIN).grants(&[
        "pod-sets[@nodes].containers[node].limits[$config./devices/resource]",
        "pod-sets[@nodes].containers[node].capabilities[IPC_LOCK]",
        "pod-sets[@nodes].pod-annotations[k8s.v1.cni.cncf.io/networks]",
    ]);
    let mpi = MockPlugin::new(&trainyard_plugin_mpi::PLUGIN).all_granted();
    MockInput::new(yaml).plugin(fabric).plugin(mpi)
}

/// Returns the paths that a container mounts.
fn mounts(container: &Value) -> Vec<&str> {
    let mounts = container["volumeMounts"].as_array().unwrap().iter();
    mounts
        .map(|mount| mount["mountPath"].as_str().unwrap())
        .collect()
}

#[test]
fn only_the_nodes_have_devices_and_settings() {
    let rendered = input(INPUT).render().unwrap();
    let node = rendered.container("node", "node").unwrap();
    assert_eq!(
        node["resources"]["limits"],
        json!({"nvidia.com/gpu": 8, "rdma/hca": "8"})
    );
    assert_eq!(mounts(node), ["/home/mpiuser/.ssh", "/etc/nccl.conf"]);
    let launcher = rendered.container("launcher", "node").unwrap();
    assert_eq!(launcher.get("resources"), None);
    assert_eq!(mounts(launcher), ["/home/mpiuser/.ssh", "/etc/mpi"]);
    let objects = rendered.objects().iter();
    let files = objects.filter_map(|object| object["data"]["nccl.conf"].as_str());
    assert_eq!(files.collect::<Vec<_>>(), ["NCCL_IB_HCA=mlx5\n"]);
}

#[test]
fn a_launcher_that_is_a_node_needs_gpus_for_the_fabric() {
    let yaml = INPUT.replace("mpi: {", "mpi: {runLauncherAsNode: true, ");
    let rendered = input(&yaml).render().unwrap();
    let launcher = rendered.container("launcher", "node").unwrap();
    assert_eq!(launcher.get("resources"), None);
    let gpus = "    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}\n";
    let rendered = input(&format!("{yaml}{gpus}")).render().unwrap();
    let launcher = rendered.container("launcher", "node").unwrap();
    assert_eq!(launcher["resources"]["limits"]["rdma/hca"], "8");
}

#[test]
fn a_train_job_sets_only_variables_of_nccl() {
    let with_env = |env: &str| {
        let annotation =
            format!("trainyard.dev/plugin-parameters: '{{\"nccl-fabric\": {{\"env\": {env}}}}}'");
        INPUT.replace(
            "namespace: research}",
            &format!("namespace: research, annotations: {{{annotation}}}}}"),
        )
    };
    let rendered = input(&with_env(r#"{"NCCL_DEBUG": "INFO"}"#))
        .render()
        .unwrap();
    let debug = "pod-sets[node].containers[node].env[NCCL_DEBUG]";
    assert_eq!(rendered.outcome().value(debug), Some(json!("INFO")));
    let error = input(&with_env(r#"{"PATH": "/tmp"}"#))
        .render()
        .unwrap_err();
    let error = error.to_string();
    assert!(error.contains("`PATH` must begin with `NCCL_`"), "{error}");
}

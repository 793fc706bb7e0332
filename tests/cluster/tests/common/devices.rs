//! Devices of Dynamic Resource Allocation, and a runtime whose nodes request them.

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, NodeSpec, Resource, Write};

/// The DeviceClass, which no other test uses.
const CLASS: &str = "gpu.claims.example.com";
/// The annotation with which the runtime requests devices for each node.
const PER_NODE: &str = "trainyard.dev/resource-claims-per-node";
/// The name of the runtime.
pub(crate) const RUNTIME: &str = "four";

/// Returns a runtime whose nodes have four devices each.
pub(crate) fn runtime() -> Value {
    let mut four = super::runtime();
    four["metadata"]["name"] = json!(RUNTIME);
    let claim = json!([{"name": "gpu", "deviceClassName": CLASS, "count": 4}]);
    four["metadata"]["annotations"] = json!({PER_NODE: claim.to_string()});
    four
}

/// Creates two nodes with this number of devices each.
pub(crate) async fn machines(cluster: &Cluster, devices: usize) -> Result<()> {
    let classes = Resource::cluster_wide("/apis/resource.k8s.io/v1", "deviceclasses");
    let slices = Resource::cluster_wide("/apis/resource.k8s.io/v1", "resourceslices");
    let cel = format!("device.driver == \"{CLASS}\"");
    let class = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": cel}}]},
    });
    // A kept cluster has those of earlier tests.
    let write = Write::by("test");
    let api = cluster.api(&classes, "");
    api.apply(&class, &write).await?.accepted()?;
    for node in ["claims-0", "claims-1"] {
        cluster.kubelet().add_node(&NodeSpec::large(node)).await?;
        let devices: Vec<_> = (0..devices)
            .map(|at| json!({"name": format!("gpu-{at}")}))
            .collect();
        let slice = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
            "spec": {
                "driver": CLASS, "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            },
        });
        let api = cluster.api(&slices, "");
        api.apply(&slice, &write).await?.accepted()?;
    }
    Ok(())
}

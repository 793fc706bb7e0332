//! Nodes that exist only as objects.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::Node,
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// The namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";
/// The duration of a node's lease.
const LEASE_SECONDS: i32 = 40;
/// The field manager of the nodes.
const MANAGER: &str = "fake-kubelet";

/// The specification of a node.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its labels, in addition to the host name.
    pub labels: BTreeMap<String, String>,
    /// Its capacity, all of which is allocatable: quantities by resource name.
    pub capacity: BTreeMap<String, String>,
}

impl NodeSpec {
    /// Returns a large machine with 8 GPUs and capacity for 110 pods.
    pub fn large(name: impl Into<String>) -> Self {
        let capacity = [
            ("cpu", "64"),
            ("memory", "512Gi"),
            ("ephemeral-storage", "1Ti"),
            ("pods", "110"),
            ("nvidia.com/gpu", "8"),
        ];
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            capacity: capacity
                .map(|(resource, quantity)| (resource.to_owned(), quantity.to_owned()))
                .into(),
        }
    }
}

/// Creates or updates the node, ready and with a lease.
pub(super) async fn register(client: &Client, spec: &NodeSpec) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    renew(client, &spec.name).await?;
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels(spec)},
    });
    nodes
        .patch(&spec.name, &params, &Patch::Apply(node))
        .await?;
    let status = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name},
        "status": status(spec),
    });
    nodes
        .patch_status(&spec.name, &params, &Patch::Apply(status))
        .await?;
    Ok(())
}

/// Renews the lease of the node.
pub(super) async fn renew(client: &Client, name: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let spec = LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(LEASE_SECONDS),
        renew_time: Some(MicroTime(Timestamp::now())),
        ..LeaseSpec::default()
    };
    let patch = Patch::Merge(json!({"spec": spec}));
    match leases.patch(name, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        patched => return patched.map(drop).map_err(Into::into),
    }
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
    };
    leases.create(&PostParams::default(), &lease).await?;
    Ok(())
}

fn labels(spec: &NodeSpec) -> BTreeMap<String, String> {
    let mut labels = spec.labels.clone();
    let known = [
        ("kubernetes.io/hostname", spec.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ];
    for (label, value) in known {
        labels
            .entry(label.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    labels
}

fn status(spec: &NodeSpec) -> Value {
    let now = Timestamp::now();
    let condition = |name: &str, status: &str, reason: &str| {
        json!({
            "type": name,
            "status": status,
            "reason": reason,
            "message": "as the fake kubelet has it",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!({
        "capacity": spec.capacity,
        "allocatable": spec.capacity,
        "addresses": [{"type": "Hostname", "address": spec.name}],
        "conditions": [
            condition("Ready", "True", "KubeletReady"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ],
    })
}

//! Helpers for the tests of the controller on a cluster.

pub(crate) mod access;
mod case;
pub(crate) mod charts;
mod controlled;
mod creations;
pub(crate) mod declared;
pub(crate) mod devices;
mod disturbed;
pub(crate) mod editions;
pub(crate) mod flavors;
mod handover;
mod in_turns;
pub(crate) mod keys;
mod namespace;
pub(crate) mod pages;
pub(crate) mod parts;
mod reporting;
pub(crate) mod roles;
pub(crate) mod runtimes;
mod scenario;
mod server_metadata;
mod status;
mod undisturbed;

use std::path::PathBuf;

use anyhow::Result;
pub(crate) use case::Case;
pub(crate) use controlled::{Controlled, Setup};
pub(crate) use creations::Creations;
pub(crate) use disturbed::Disturbed;
pub(crate) use handover::{GANG, Handover, hold_after_initializers};
pub(crate) use in_turns::InTurns;
pub(crate) use namespace::{Namespace, Objects, differing};
pub(crate) use reporting::{Reporting, progress};
pub(crate) use scenario::Scenario;
use serde_json::{Value, json};
pub(crate) use server_metadata::without_server_metadata;
pub(crate) use status::{
    OVERDUE, RESUMED, SUSPENDED, conditions, counts, described_conditions, is, is_running,
    is_suspended, until_counted,
};
use trainyard_cluster::{Cluster, ControlPlane, Resource, Write, deploy};
use trainyard_schema::documents::Kind;
pub(crate) use undisturbed::{Runtimes, Undisturbed, runtime_with};

/// Creates these runtimes and the controller's ServiceAccount in deploy/. Returns its kubeconfig file.
pub(crate) fn prepare(cluster: &Cluster, runtimes: &[Value]) -> Result<PathBuf> {
    let plane = cluster.plane();
    plane.block_on(async {
        create_runtimes(plane, runtimes).await?;
        deploy(plane).await
    })
}

/// Creates ClusterTrainingRuntimes.
pub(crate) async fn create_runtimes(plane: &ControlPlane, runtimes: &[Value]) -> Result<()> {
    let kind = kind(Kind::ClusterTrainingRuntime)?;
    let api = plane.api(&kind, "");
    for runtime in runtimes {
        api.create(runtime, &Write::strict()).await?.accepted()?;
    }
    Ok(())
}

pub(crate) fn kind(kind: Kind) -> Result<Resource> {
    Ok(Resource::defined_by(&kind.crd()?)?)
}

/// Returns the ClusterTrainingRuntime `torch`, with one replicated job.
pub(crate) fn runtime() -> Value {
    let container = json!({"name": "node", "image": "example.com/image"});
    let job = json!({
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [container]}}},
        },
    });
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    })
}

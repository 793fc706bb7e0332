//! Helpers for the tests of the controller on a cluster.

mod case;
pub mod charts;
mod controlled;
mod creations;
pub mod declared;
pub mod devices;
mod disturbed;
pub mod editions;
pub mod flavors;
mod handover;
pub mod keys;
mod namespace;
pub mod pages;
pub mod parts;
mod reporting;
pub mod roles;
pub mod runtimes;
mod scenario;
mod status;
mod undisturbed;

use std::path::PathBuf;

use anyhow::Result;
pub use case::Case;
pub use controlled::{Controlled, Setup};
pub use creations::Creations;
pub use disturbed::Disturbed;
pub use handover::{GANG, Handover, hold_after_initializers};
pub use namespace::{Namespace, Objects, differing};
pub use reporting::{Reporting, progress};
pub use scenario::Scenario;
use serde_json::{Value, json};
pub use status::{
    OVERDUE, RESUMED, SUSPENDED, conditions, counts, described_conditions, is, is_running,
    is_suspended, until_counted,
};
use trainyard_cluster::{Cluster, Resource, Write, deploy};
use trainyard_schema::documents::Kind;
pub use undisturbed::{Runtimes, Undisturbed, runtime_with};

/// Creates these runtimes and the controller's ServiceAccount in deploy/. Returns its kubeconfig file.
pub fn prepare(cluster: &Cluster, runtimes: &[Value]) -> Result<PathBuf> {
    cluster.plane().block_on(async {
        let kind = kind(Kind::ClusterTrainingRuntime)?;
        let api = cluster.api(&kind, "");
        for runtime in runtimes {
            api.create(runtime, &Write::strict()).await?.accepted()?;
        }
        deploy(cluster.plane()).await
    })
}

pub fn kind(kind: Kind) -> Result<Resource> {
    Ok(Resource::defined_by(&kind.crd()?)?)
}

/// Returns the ClusterTrainingRuntime `torch`, with one replicated job.
pub fn runtime() -> Value {
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

//! What tests of the controller on a cluster share.
#![allow(
    dead_code,
    unused_imports,
    missing_docs,
    unreachable_pub,
    clippy::indexing_slicing
)]

mod case;
mod controlled;
mod disturbed;
pub mod flavors;
pub mod keys;
mod namespace;
pub mod parts;
mod place;
pub mod roles;
pub mod runtimes;
mod seen;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Resource, Write, deploy};
use trainyard_schema::documents::Kind;

pub use case::Case;
pub use controlled::{Controlled, Setup};
pub use disturbed::Disturbed;
pub use namespace::{Namespace, Objects};
pub use place::Place;
pub use seen::Seen;

/// Makes these runtimes, and the account that deploy/ gives the controller; returns its kubeconfig file.
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

/// The runtime `torch`, of one replicated job.
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

/// Type, status and reason of each condition.
pub fn conditions(job: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten();
    conditions
        .map(|c| [text(&c["type"]), text(&c["status"]), text(&c["reason"])])
        .collect()
}

pub fn is(job: &Value, kind: &str, status: &str) -> bool {
    conditions(job)
        .iter()
        .any(|c| c[0] == kind && c[1] == status)
}

/// The counts of each replicated job, by name.
pub fn counts(job: &Value) -> BTreeMap<String, &Value> {
    let jobs = job["status"]["jobsStatus"].as_array();
    let jobs = jobs.into_iter().flatten();
    jobs.map(|job| (job["name"].to_string(), job)).collect()
}

pub fn is_running(job: &Value) -> bool {
    counts(job).values().all(|job| job["ready"] == 1) && !counts(job).is_empty()
}

pub fn is_suspended(job: &Value) -> bool {
    let suspended = |job: &&Value| job["suspended"] == 1 && job["active"] == 0;
    let counts = counts(job);
    is(job, "Suspended", "True") && counts.values().all(suspended) && !counts.is_empty()
}

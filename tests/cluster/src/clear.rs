//! Removes what earlier test programs left on a kept cluster.

use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_schema::documents::Kind;

use crate::{
    api::{Api, Write},
    control_plane::ControlPlane,
    kept::NAMESPACES,
    resource::Resource,
    wait::eventually,
};

/// Deletes what tests have left behind: their namespaces with everything in them, runtimes, kinds, nodes and the controller's Lease.
///
/// The API server removes the namespaces later. No object that a controller would act on is left.
pub(crate) async fn clear(plane: &ControlPlane, kinds: &[Value]) -> Result<()> {
    let namespaces = Resource::namespaces();
    let jobs = Resource::defined_by(&Kind::TrainJob.crd()?)?;
    let runtimes = Resource::defined_by(&Kind::ClusterTrainingRuntime.crd()?)?;
    let namespaces = plane.api(&namespaces, "");
    for name in names(&namespaces).await? {
        if name.starts_with(NAMESPACES) {
            delete_all(&plane.api(&jobs, &name)).await?;
            delete(&namespaces, &name).await?;
        }
    }
    delete_all(&plane.api(&runtimes, "")).await?;
    delete_all(&plane.api(&Resource::cluster_wide("/api/v1", "nodes"), "")).await?;
    let leases = Resource::namespaced("/apis/coordination.k8s.io/v1", "leases");
    delete_all(&plane.api(&leases, "kubeflow-system")).await?;
    let crds = Resource::crds();
    let crds = plane.api(&crds, "");
    let kinds: Vec<_> = kinds.iter().map(name_of).collect();
    for crd in names(&crds).await? {
        if !kinds.contains(&crd) {
            delete(&crds, &crd).await?;
        }
    }
    let everywhere = Resource::cluster_wide("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs");
    eventually("the TrainJobs of earlier tests are gone", async || {
        let all = plane.api(&everywhere, "").items().await?;
        for job in &all {
            release(plane, &jobs, job).await?;
        }
        Ok(all.is_empty().then_some(()))
    })
    .await
}

/// Removes the finalizers with which a test blocked a deletion.
async fn release(plane: &ControlPlane, jobs: &Resource, job: &Value) -> Result<()> {
    if job.pointer("/metadata/finalizers").is_some() {
        let namespace = job.pointer("/metadata/namespace").and_then(Value::as_str);
        let api = plane.api(jobs, namespace.unwrap_or_default());
        let patch = json!({"metadata": {"finalizers": null}});
        let name = name_of(job);
        api.merge(&name, &patch, &Write::default()).await?;
    }
    Ok(())
}

fn name_of(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

async fn names(api: &Api<'_>) -> Result<Vec<String>> {
    Ok(api.items().await?.iter().map(name_of).collect())
}

async fn delete_all(api: &Api<'_>) -> Result<()> {
    for name in names(api).await? {
        delete(api, &name).await?;
    }
    Ok(())
}

async fn delete(api: &Api<'_>, name: &str) -> Result<()> {
    let answer = api.delete(name).await?;
    match answer.status {
        // It is deleted already, or is being deleted.
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => Ok(()),
        _ => answer.accepted().map(drop).map_err(Into::into),
    }
}

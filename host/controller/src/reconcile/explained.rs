//! A live TrainJob with its snapshot, for `trainyard explain`.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GetParams},
};
use serde_json::Value;
use thiserror::Error;
use trainyard_api::{TrainJob, names};

use super::{
    error::ReconcileError,
    live_cluster::train_jobs,
    owner,
    snapshot::Snapshot,
    status,
    vouch::{Digests, Voucher},
};
use crate::{
    annotations::SNAPSHOT,
    kubernetes::{kind_of, unless_gone},
    watch::{TrainJobObject, answer, objects},
};

/// Why a live TrainJob cannot be read.
#[derive(Debug, Error)]
pub enum LiveError {
    /// No TrainJob has that name.
    #[error(
        "there is no TrainJob `{name}` in namespace `{namespace}`; use -n for another namespace"
    )]
    NoTrainJob { namespace: String, name: String },
    /// Its JobSet has not been created yet.
    #[error(
        "TrainJob `{name}` has no snapshot yet, because its JobSet has not been created; see its Events for the reason"
    )]
    NoSnapshot { name: String },
    /// Another client changed its snapshot.
    #[error(
        "ConfigMap `{map}`: data: another client changed it: its digest differs from the one in the annotation {SNAPSHOT} of JobSet `{name}`; this explanation shows that client's content, which the controller does not use; delete the ConfigMap to have it recreated from the current runtime"
    )]
    SnapshotChanged { map: String, name: String },
    /// It is invalid, its snapshot cannot be used, or the API server refuses or does not answer.
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
}

/// A live TrainJob.
pub struct Live {
    /// The TrainJob.
    pub job: TrainJob,
    /// Its kind, metadata and spec in the API server.
    pub object: Value,
    /// The snapshot that it was rendered from.
    pub snapshot: Snapshot,
    /// Whether its status says that it has run.
    has_run: bool,
}

impl Live {
    /// Checks the snapshot with the digests that this JobSet has of it, as a reconcile does. A JobSet of another owner proves nothing.
    ///
    /// # Errors
    /// Another client changed the snapshot.
    pub fn check_snapshot(&self, job_set: &Value) -> Result<(), LiveError> {
        let metadata = job_set.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
        let uid = self.job.metadata.uid.as_deref().unwrap_or_default();
        let Some(digests) = &self.snapshot.stored else {
            return Ok(());
        };
        if !owner::is_of(uid, &metadata) {
            return Ok(());
        }
        let annotation = metadata.annotations.unwrap_or_default().remove(SNAPSHOT);
        let suspended = job_set.pointer("/spec/suspend").and_then(Value::as_bool);
        let voucher =
            Voucher::of_annotation(annotation.map(Into::into), suspended.unwrap_or_default());
        let started = self.has_run || self.snapshot.started;
        let name = &self.job.metadata.name;
        match voucher.trust(digests, started) {
            Some(_) => Ok(()),
            None => Err(LiveError::SnapshotChanged {
                map: Snapshot::name(name),
                name: name.clone(),
            }),
        }
    }
}

/// Reads a live TrainJob with the snapshot that it was rendered from.
///
/// # Errors
/// It does not exist, it has no snapshot yet, or it cannot be read.
pub async fn live(client: Client, namespace: &str, name: &str) -> Result<Live, LiveError> {
    let failed = |what: String| move |problem| ReconcileError::api(what, problem);
    let request = objects::<TrainJobObject>(namespace).get(name, &GetParams::default());
    let found = unless_gone(answer::<TrainJobObject>(&client, request).await);
    let found = found.map_err(failed(format!("reading TrainJob `{name}`")))?;
    let Some((_, read)) = found.flatten() else {
        return Err(LiveError::NoTrainJob {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
    };
    let state = read.map_err(|unreadable| ReconcileError::Unreadable {
        kind: names::TRAIN_JOB,
        name: name.to_owned(),
        why: unreadable.why.into(),
    })?;
    let job = train_jobs::read(&state)?;
    let has_run = status::has_run(&state.status);
    let object = state
        .object()
        .map_err(|problem| ReconcileError::TrainJob(vec![problem]))?;
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let map = Snapshot::name(name);
    let found = maps.get_opt(&map).await;
    let found = found.map_err(failed(format!("reading ConfigMap `{map}`")))?;
    let Some(map) = found else {
        return Err(LiveError::NoSnapshot {
            name: name.to_owned(),
        });
    };
    Snapshot::check_owner(&map, &job)?;
    // The listed objects are not read here, so their number does not matter.
    let digests = map.data.as_ref().map(Digests::of);
    let snapshot = Snapshot::from_config_map(&map, digests, &job, u64::MAX);
    let snapshot = snapshot.map_err(ReconcileError::from)?;
    Ok(Live {
        job,
        object,
        snapshot,
        has_run,
    })
}

/// Reads the JobSet of a live TrainJob; `None` if there is none.
///
/// # Errors
/// The API server does not answer, or does not allow it.
pub async fn live_job_set(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, LiveError> {
    let kind = ApiResource::from_gvk(&kind_of(names::JOB_SET_API_VERSION, names::JOB_SET));
    let job_sets: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
    let found = job_sets.get_opt(name).await;
    let failed = |problem| ReconcileError::api(format!("reading JobSet `{name}`"), problem);
    let found = found.map_err(failed)?;
    let value = found.map(serde_json::to_value).transpose();
    Ok(value.map_err(|problem| failed(kube::Error::SerdeError(problem)))?)
}

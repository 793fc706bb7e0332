//! The status of the TrainJob is written, and the annotation about its error.

use kube::api::Patch;
use serde_json::json;
use trainyard_api::names::ERROR_ANNOTATION;

use crate::{
    kubernetes::unless_gone,
    reconcile::{
        context::{Context, merging},
        error::ReconcileError,
        observed::Effect,
    },
    watch::{State as _, TrainJobObject, TrainJobStatus, answer, objects},
};

/// Writes the status if the TrainJob has not changed, and updates the store.
pub(super) async fn write_status(
    cx: &Context<'_>,
    status: &TrainJobStatus,
) -> Result<Effect, ReconcileError> {
    let state = cx.job()?;
    let patch = json!({
        "metadata": {"uid": state.uid, "resourceVersion": state.resource_version()},
        // An empty list would mean that no replicated job is known yet.
        "status": {
            "conditions": status.conditions,
            "jobsStatus": (!status.jobs_status.is_empty()).then_some(&status.jobs_status),
        },
    });
    let (patch, params) = (Patch::Merge(&patch), merging());
    let jobs = objects::<TrainJobObject>(&cx.key.namespace);
    let request = jobs.patch_subresource("status", &cx.key.name, &params, &patch);
    send(cx, "writing the TrainJob's status", request).await
}

/// Writes or removes the annotation about the error. The merge patch changes nothing else of the TrainJob.
pub(super) async fn write_error(
    cx: &Context<'_>,
    error: Option<&str>,
) -> Result<Effect, ReconcileError> {
    let patch = json!({
        "metadata": {"uid": cx.job()?.uid, "annotations": {ERROR_ANNOTATION: error}},
    });
    let jobs = objects::<TrainJobObject>(&cx.key.namespace);
    let request = jobs.patch(&cx.key.name, &merging(), &Patch::Merge(&patch));
    send(cx, "writing the TrainJob's annotation", request).await
}

/// Sends a patch and updates the store.
async fn send(
    cx: &Context<'_>,
    what: &str,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Effect, ReconcileError> {
    let (key, state) = (cx.key, cx.job()?);
    let written = answer::<TrainJobObject>(&cx.reconciler.client, request).await;
    let written = unless_gone(written).map_err(|error| ReconcileError::api(what, error))?;
    let store = &cx.reconciler.stores.jobs;
    match written {
        // The TrainJob was deleted in the meantime.
        None => store.remove(key, state.version()),
        Some(Some((key, read))) => drop(store.put_read(key, read)),
        Some(None) => {}
    }
    Ok(Effect::Done)
}

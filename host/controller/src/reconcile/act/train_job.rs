//! Writes the status of the TrainJob, and the annotation about its error.

use std::sync::Arc;

use kube::api::Patch;
use serde_json::json;
use trainyard_api::names::ERROR_ANNOTATION;

use crate::{
    kubernetes::unless_gone,
    reconcile::{
        context::{Context, merging},
        error::ReconcileError,
        observed::{AnnotationWrite, Effect},
    },
    watch::{Keyed, State as _, TrainJobObject, TrainJobStatus, answer, objects},
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
    if let Some((key, read)) = send(cx, "writing the TrainJob's status", request).await? {
        cx.reconciler.stores.jobs.put_read(key, read);
    }
    Ok(Effect::Done)
}

/// Writes or removes the annotation about the error. The merge patch changes nothing else of the TrainJob.
///
/// Only the watch updates the store, because it compares each version with the one before: a version that differs only in the annotation
/// does not trigger a reconcile.
pub(super) async fn write_error(
    cx: &Context<'_>,
    error: Option<&Arc<str>>,
) -> Result<Effect, ReconcileError> {
    let uid = &cx.job()?.uid;
    let patch = json!({
        "metadata": {"uid": uid, "annotations": {ERROR_ANNOTATION: error.map(|error| &**error)}},
    });
    let jobs = objects::<TrainJobObject>(&cx.key.namespace);
    let request = jobs.patch(&cx.key.name, &merging(), &Patch::Merge(&patch));
    let note = |failed| {
        let write = AnnotationWrite {
            uid: uid.clone(),
            text: error.cloned(),
            at: cx.now,
            failed,
        };
        cx.reconciler.annotated().insert(cx.key.clone(), write);
    };
    // Noted first, because the watch may show it before the answer arrives.
    note(false);
    match send(cx, "writing the TrainJob's annotation", request).await {
        Ok(_) => Ok(Effect::Done),
        Err(error) => {
            note(true);
            Err(error)
        }
    }
}

/// Sends a patch and returns the answer; `None` if the TrainJob does not exist.
async fn send(
    cx: &Context<'_>,
    what: &str,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Option<Keyed<TrainJobObject>>, ReconcileError> {
    let (key, state) = (cx.key, cx.job()?);
    let written = answer::<TrainJobObject>(&cx.reconciler.client, request).await;
    let written = unless_gone(written).map_err(|error| ReconcileError::api(what, error))?;
    if written.is_none() {
        // The TrainJob was deleted in the meantime.
        cx.reconciler.stores.jobs.remove(key, state.version());
    }
    Ok(written.flatten())
}

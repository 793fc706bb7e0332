//! The status of the TrainJob is written.

use kube::api::Patch;
use serde_json::json;

use crate::kubernetes::unless_gone;
use crate::reconcile::context::{Context, merging};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observed::Effect;
use crate::watch::{State as _, TrainJobObject, TrainJobStatus, answer, objects};

/// Writes the status, if the TrainJob is still what it was written for. The store is told what became of it.
pub(super) async fn write(
    cx: &Context<'_>,
    status: &TrainJobStatus,
) -> Result<Effect, ReconcileError> {
    let (key, state) = (cx.key, cx.job()?);
    let patch = json!({
        "metadata": {"uid": state.uid, "resourceVersion": state.resource_version()},
        // An empty list would be one of a TrainJob that has replicated jobs, none of which is known.
        "status": {
            "conditions": status.conditions,
            "jobsStatus": (!status.jobs_status.is_empty()).then_some(&status.jobs_status),
        },
    });
    let (patch, params) = (Patch::Merge(&patch), merging());
    let jobs = objects::<TrainJobObject>(&key.namespace);
    let request = jobs.patch_subresource("status", &key.name, &params, &patch);
    let written = answer::<TrainJobObject>(&cx.reconciler.client, request).await;
    let written = unless_gone(written)
        .map_err(|error| ReconcileError::api("writing the TrainJob's status", error))?;
    let store = &cx.reconciler.stores.jobs;
    match written {
        // It was deleted meanwhile: there is nothing to say any more.
        None => store.remove(key, state.version()),
        Some(Some((key, read))) => drop(store.put_read(key, read)),
        Some(None) => {}
    }
    Ok(Effect::Done)
}

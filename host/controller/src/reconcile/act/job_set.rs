//! Applies, suspends, unsuspends and deletes the JobSet.

use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use trainyard_model::plan::Plan;

use crate::{
    kubernetes::unless_gone,
    log_shares::AllowedLine,
    reconcile::{
        artifacts::Artifacts,
        context::{Context, MANAGER, merging},
        error::ReconcileError,
        job_set,
        object_version::ObjectVersion,
        observed::Effect,
    },
    watch::{JobSetObject, answer, objects},
};

/// Applies the rendered JobSet; with force only over the version that was read.
pub(super) async fn apply(
    cx: &Context<'_>,
    artifacts: &Artifacts,
    over: Option<&ObjectVersion>,
    held: bool,
    recreated: bool,
) -> Result<Effect, ReconcileError> {
    let mut job_set = artifacts.job_set_to_apply(held, recreated)?;
    let params = PatchParams::apply(MANAGER);
    let Some(over) = over else {
        let created = patch(cx, &Patch::Apply(&job_set), &params).await?;
        let plan = artifacts.rendered()?.snapshot.plan.as_ref();
        let plugins = plan.map(Plan::in_words).unwrap_or_default();
        let (namespace, name) = (&*cx.key.namespace, &*cx.key.name);
        if let Some(AllowedLine { left_out }) = cx.reconciler.log.allow(namespace) {
            tracing::info!(namespace, name, plugins, left_out, "JobSet created");
        }
        return Ok(created);
    };
    if let Some(metadata) = job_set.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), json!(over.uid));
        metadata.insert("resourceVersion".to_owned(), json!(over.version));
    }
    patch(cx, &Patch::Apply(&job_set), &params.force()).await
}

/// Suspends the JobSet.
pub(super) async fn suspend(cx: &Context<'_>, uid: &str) -> Result<Effect, ReconcileError> {
    merge(cx, job_set::suspension(uid)).await
}

/// Sets the wanted placement of the suspended JobSet's pods.
pub(super) async fn relocate(
    cx: &Context<'_>,
    artifacts: &Artifacts,
    at: &ObjectVersion,
) -> Result<Effect, ReconcileError> {
    let changes = artifacts.changes()?;
    let patch = job_set::relocation(at, changes.jobs.clone(), &changes.removed);
    merge(cx, patch).await
}

/// Unsuspends the JobSet.
pub(super) async fn resume(
    cx: &Context<'_>,
    artifacts: &Artifacts,
    at: &ObjectVersion,
) -> Result<Effect, ReconcileError> {
    let jobs = artifacts.changes()?.jobs.clone();
    merge(
        cx,
        job_set::resumption(at, jobs, artifacts.written_snapshot()),
    )
    .await
}

/// Deletes the JobSet with that UID, and no other JobSet of its name.
pub(super) async fn delete(cx: &Context<'_>, at: &ObjectVersion) -> Result<Effect, ReconcileError> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: at.uid.as_deref().map(Into::into),
            resource_version: at.version.as_deref().map(Into::into),
        }),
        ..DeleteParams::background()
    };
    let name = &cx.key.name;
    let api: Api<JobSetObject> = cx.api();
    let deleted = unless_gone(api.delete(name, &params).await);
    let failed = |error| ReconcileError::api(format!("deleting JobSet `{name}`"), error);
    deleted.map(|_| Effect::Done).map_err(failed)
}

async fn merge(cx: &Context<'_>, patch_of: Value) -> Result<Effect, ReconcileError> {
    patch(cx, &Patch::Merge(&patch_of), &merging()).await
}

/// Patches the JobSet and updates the store.
async fn patch(
    cx: &Context<'_>,
    patch: &Patch<&Value>,
    params: &PatchParams,
) -> Result<Effect, ReconcileError> {
    let (name, store) = (&cx.key.name, &cx.reconciler.stores.job_sets);
    let job_sets = objects::<JobSetObject>(&cx.key.namespace);
    let request = job_sets.patch(name, params, patch);
    let bytes = request.as_ref().map_or(0, |request| request.body().len());
    let written = answer::<JobSetObject>(&cx.reconciler.client, request).await;
    let written = written.map_err(|error| ReconcileError::writing_job_set(name, bytes, error))?;
    if let Some((key, read)) = written {
        store.put_read(key, read);
    }
    Ok(Effect::Done)
}

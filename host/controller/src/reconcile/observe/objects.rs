//! The existence and the owner of an object beside a JobSet.

use kube::api::ObjectMeta;
use trainyard_model::text::clean;

use crate::reconcile::{
    artifacts::Artifacts,
    context::Context,
    error::ReconcileError,
    not_served,
    object_ref::ObjectRef,
    observed::{Fact, ObjectState},
    owner,
};

/// Reads an object that a snapshot lists. The list may be forged, so only kinds that plugins emit are read.
pub(super) async fn listed(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    object: &ObjectRef,
) -> Result<Fact, ReconcileError> {
    if !cx.reconciler.emitted.has(&object.kind) {
        return Ok(Fact::Object(ObjectState::NotEmitted));
    }
    let found = metadata(cx, object).await?;
    state_of(cx, artifacts, object, found).map(Fact::Object)
}

/// Reads an object that is to be written. An object that is being deleted cannot be used, because pods would wait for it.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    object: &ObjectRef,
) -> Result<Fact, ReconcileError> {
    let found = metadata(cx, object).await?;
    let deleting = found.as_ref().filter(|it| it.deletion_timestamp.is_some());
    let finalizers = deleting.map(|it| it.finalizers.clone().unwrap_or_default());
    let state = state_of(cx, artifacts, object, found)?;
    Ok(Fact::Object(match (state, finalizers) {
        (ObjectState::Ours(_), Some(finalizers)) => {
            ObjectState::Unusable(artifacts.failure(ReconcileError::Deleting {
                kind: object.kind.to_string(),
                name: object.name.to_string(),
                finalizers: clean(&finalizers.join(", ")),
                is_recreated: true,
            }))
        }
        (state, _) => state,
    }))
}

async fn metadata(
    cx: &Context<'_>,
    object: &ObjectRef,
) -> Result<Option<ObjectMeta>, ReconcileError> {
    let objects = cx.emitted(&object.kind);
    let found = objects.get_metadata_opt(object.name.as_str()).await;
    match found {
        Ok(found) => Ok(found.map(|it| it.metadata)),
        Err(error) => Err(not_served::or_api_error(cx, object, "reading", error).await),
    }
}

fn state_of(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    object: &ObjectRef,
    found: Option<ObjectMeta>,
) -> Result<ObjectState, ReconcileError> {
    let uid = &cx.job()?.uid;
    Ok(match found {
        None => ObjectState::Missing,
        Some(found) if owner::is_of(uid, &found) => {
            ObjectState::Ours(found.resource_version.map(Into::into))
        }
        Some(found) => {
            let (kind, name) = (object.kind.kind(), object.name.as_str());
            let foreign = owner::foreign(&cx.key.name, kind, name, &found);
            ObjectState::Unusable(artifacts.failure(foreign))
        }
    })
}

//! Creates and applies the objects beside a JobSet.

use kube::{
    api::{Patch, PatchParams},
    client::Body,
    core::Request,
};
use serde_json::Value;
use trainyard_render::RenderedObject;

use crate::{
    client, keys,
    reconcile::{
        artifacts::Artifacts,
        context::{Context, MANAGER, creating},
        error::ReconcileError,
        not_served,
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        observed::Effect,
        owner,
    },
};

/// Applies an object.
pub(super) async fn apply(
    cx: &Context<'_>,
    artifacts: &Artifacts,
    object: &ObjectRef,
    force: bool,
) -> Result<Effect, ReconcileError> {
    let params = PatchParams::apply(MANAGER);
    let params = if force { params.force() } else { params };
    let value = with_owner(artifacts, artifacts.object(object)?)?;
    let patch = Patch::Apply(&value);
    let objects = cx.emitted(&object.kind);
    let applied = objects
        .patch_metadata(object.name.as_str(), &params, &patch)
        .await;
    match applied {
        Ok(applied) => Ok(Effect::At(ObjectVersion::of(&applied.metadata))),
        Err(error) => Err(not_served::or_api_error(cx, object, "writing", error).await),
    }
}

/// Creates an object.
pub(super) async fn create(
    cx: &Context<'_>,
    artifacts: &Artifacts,
    object: &ObjectRef,
) -> Result<Effect, ReconcileError> {
    let rendered = artifacts.object(object)?;
    let value = with_owner(artifacts, rendered)?;
    let objects = Request::new(cx.emitted(&object.kind).resource_url());
    let created = if rendered.material.is_empty() {
        match serde_json::to_vec(&value) {
            Ok(bytes) => cx.text(objects.create(&creating(), bytes)).await.map(drop),
            Err(error) => Err(kube::Error::SerdeError(error)),
        }
    } else {
        create_with_keys(cx, &objects, rendered, value).await?
    };
    match created {
        Ok(()) => Ok(Effect::Done),
        Err(error) => Err(not_served::or_api_error(cx, object, "creating", error).await),
    }
}

/// Creates a Secret with generated keys. No part of the answer that may contain a key is kept.
async fn create_with_keys(
    cx: &Context<'_>,
    objects: &Request,
    rendered: &RenderedObject,
    value: Value,
) -> Result<Result<(), kube::Error>, ReconcileError> {
    let material = rendered.material.clone();
    let filled = cx.on_thread(move |_, _| keys::fill(&value, &material));
    let filled = filled.await?.map_err(|problem| ReconcileError::Keys {
        name: rendered.name.to_string(),
        problem,
    })?;
    let request = match objects.create(&creating(), Vec::new()) {
        Ok(request) => request.map(|_| Body::from(filled.json)),
        Err(error) => return Ok(Err(kube::Error::BuildRequest(error))),
    };
    match client::created(&cx.reconciler.client, request).await {
        Err(kube::Error::Api(refusal)) => {
            let texts = filled.texts;
            let shown = move |_: &_, _: &_| match texts.are_quoted_in(&refusal.message) {
                true => client::refusal(refusal.code, "the answer quotes a key, and is not shown"),
                false => kube::Error::Api(refusal),
            };
            Ok(Err(cx.on_thread(shown).await?))
        }
        created => Ok(created),
    }
}

/// Returns the object with its owner reference.
fn with_owner(artifacts: &Artifacts, object: &RenderedObject) -> Result<Value, ReconcileError> {
    let mut value = object.value.clone();
    owner::set(&mut value, artifacts.job()?);
    Ok(value)
}

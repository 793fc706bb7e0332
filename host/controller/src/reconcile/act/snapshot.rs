//! Creates, replaces and marks the snapshot.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Patch;
use serde_json::{Map, Value, json};

use crate::{
    annotations::{RECREATE, STARTED},
    reconcile::{
        artifacts::Artifacts,
        context::{Context, creating, merging},
        error::ReconcileError,
        object_version::ObjectVersion,
        observed::Effect,
        snapshot::{KEYS, Snapshot},
        step::SnapshotMark,
        vouch::Digests,
    },
};

/// Creates the snapshot of the rendering.
pub(super) async fn create(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Effect, ReconcileError> {
    let map = config_map(cx, artifacts).await?;
    let what = || format!("creating ConfigMap `{}`", Snapshot::name(&cx.key.name));
    let created = cx.config_maps().create(&creating(), &map).await;
    let created = created.map_err(|error| ReconcileError::api(what(), error))?;
    written(artifacts, &created)
}

/// Replaces the snapshot with the one of the rendering.
pub(super) async fn replace(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    at: &ObjectVersion,
) -> Result<Effect, ReconcileError> {
    let name = Snapshot::name(&cx.key.name);
    let failed = |error| ReconcileError::api(format!("replacing ConfigMap `{name}`"), error);
    let mut map = config_map(cx, artifacts).await?;
    map.metadata.uid = at.uid.as_deref().map(Into::into);
    map.metadata.resource_version = at.version.as_deref().map(Into::into);
    let mut patch = json!(map);
    if let Some(data) = patch.get_mut("data").and_then(Value::as_object_mut) {
        // A merge patch keeps keys that it does not name, which another client may have added.
        for key in KEYS {
            data.entry(key).or_insert(Value::Null);
        }
    }
    let patch = Patch::Merge(&patch);
    let replaced = cx.config_maps().patch(&name, &merging(), &patch).await;
    written(artifacts, &replaced.map_err(failed)?)
}

/// Marks the snapshot. A snapshot that is marked as started becomes immutable.
pub(super) async fn mark(
    cx: &Context<'_>,
    mark: SnapshotMark,
    at: &ObjectVersion,
) -> Result<Effect, ReconcileError> {
    let name = Snapshot::name(&cx.key.name);
    let mut annotations = Map::new();
    if mark.started {
        annotations.insert(STARTED.to_owned(), json!("true"));
    }
    if let Some(recreate) = mark.recreate {
        let value = if recreate { json!("true") } else { Value::Null };
        annotations.insert(RECREATE.to_owned(), value);
    }
    let mut patch = json!({
        "metadata": {"uid": at.uid, "resourceVersion": at.version, "annotations": annotations},
    });
    if let (true, Some(patch)) = (mark.started, patch.as_object_mut()) {
        patch.insert("immutable".to_owned(), json!(true));
    }
    let patch = Patch::Merge(&patch);
    let marked = cx.config_maps().patch(&name, &merging(), &patch).await;
    let marked = marked
        .map_err(|error| ReconcileError::api(format!("marking ConfigMap `{name}`"), error))?;
    Ok(Effect::At(ObjectVersion::of(&marked.metadata)))
}

fn written(artifacts: &mut Artifacts, map: &ConfigMap) -> Result<Effect, ReconcileError> {
    let digests = map.data.as_ref().map(Digests::of);
    let at = ObjectVersion::of(&map.metadata);
    let facts = artifacts.note_written(digests)?.facts_at(at);
    Ok(Effect::Snapshot(facts))
}

/// Returns the ConfigMap with the snapshot of the rendering.
async fn config_map(cx: &Context<'_>, artifacts: &Artifacts) -> Result<ConfigMap, ReconcileError> {
    let snapshot = artifacts.rendered()?.snapshot.clone();
    let (job, namespace) = (artifacts.job()?.clone(), cx.key.namespace.clone());
    cx.on_thread(move |_, _| snapshot.to_config_map(&job, &namespace))
        .await
}

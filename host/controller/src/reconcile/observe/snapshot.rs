//! The snapshot of a TrainJob.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use trainyard_model::deadline::Deadline;
use trainyard_render::Renderer;

use super::runtime::reserve_memory;
use crate::reconcile::{
    artifacts::Artifacts,
    context::Context,
    error::{ReconcileError, SnapshotError},
    last_reconcile::AppliedObject,
    object_version::ObjectVersion,
    observed::{Fact, SnapshotMarks},
    owner,
    snapshot::{Snapshot, is_started, is_to_recreate},
    status,
    vouch::{Digests, Trust},
};

/// Reads the snapshot.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Fact, ReconcileError> {
    let name = Snapshot::name(&cx.key.name);
    let Some(map) = cx.read::<ConfigMap>(&name).await? else {
        return Ok(Fact::Snapshot(None));
    };
    let job = artifacts.job()?.clone();
    Snapshot::check_owner(&map, &job)?;
    let texts = map.data.iter().flat_map(BTreeMap::values).map(String::len);
    // A value takes at least two bytes of its text.
    reserve_memory(cx, artifacts, texts.sum::<usize>() / 2).await;
    let (voucher, has_run) = (cx.voucher.clone(), status::has_run(&cx.job()?.status));
    let read = move |renderer: &Renderer, _: &Deadline| {
        let started = has_run || is_started(&map.metadata);
        let digests = map.data.as_ref().map(Digests::of);
        let trust = digests.as_ref().map_or(Some(Trust::Nothing), |digests| {
            voucher.trust(digests, started)
        });
        let trust = trust.ok_or_else(|| SnapshotError::changed(&job.metadata.name))?;
        let mut snapshot = Snapshot::from_config_map(&map, digests, &job, renderer.most_objects())?;
        snapshot.limit(trust);
        Ok::<_, SnapshotError>((snapshot, ObjectVersion::of(&map.metadata)))
    };
    let (snapshot, at) = cx.on_thread(read).await??;
    let facts = snapshot.facts_at(at);
    artifacts.large().snapshot = Some(snapshot);
    Ok(Fact::Snapshot(Some(facts)))
}

/// Reads only the marks of the snapshot.
pub(super) async fn marks(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Fact, ReconcileError> {
    let name = Snapshot::name(&cx.key.name);
    let found = cx.config_maps().get_metadata_opt(&name).await;
    let found =
        found.map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
    let uid = &cx.job()?.uid;
    Ok(Fact::SnapshotMarks(found.map(|found| {
        let metadata = found.metadata;
        let foreign = (!owner::is_of(uid, &metadata)).then(|| {
            let foreign = owner::foreign(&cx.key.name, "ConfigMap", &name, &metadata);
            artifacts.failure(foreign)
        });
        SnapshotMarks {
            at: ObjectVersion::of(&metadata),
            foreign,
            started: is_started(&metadata),
            recreate: is_to_recreate(&metadata),
        }
    })))
}

/// Reads only the list of objects in the snapshot.
pub(super) async fn listed(cx: &Context<'_>) -> Result<Fact, ReconcileError> {
    let name = &cx.key.name;
    let found: Option<ConfigMap> = cx.read(&Snapshot::name(name)).await?;
    let most = cx.reconciler.plugins.renderer.most_objects();
    let uid = &cx.job()?.uid;
    let listed = match found.filter(|map| owner::is_of(uid, &map.metadata)) {
        Some(map) => Snapshot::listed(&map, name, most)?,
        None => Vec::new(),
    };
    Ok(Fact::Listed(AppliedObject::unknown(&listed)))
}

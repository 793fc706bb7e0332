//! The ConfigMap of the snapshot.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Patch;
use serde_json::{Map, Value, json};
use trainyard_model::deadline::Deadline;
use trainyard_render::Renderer;

use super::{
    LiveCluster, creating, merging, rendering::RenderedJobSet, train_jobs::AdmittedTrainJob,
};
use crate::{
    annotations::{RECREATE, STARTED},
    reconcile::{
        cluster::{MarksToSet, Result, Snapshots},
        error::{ReconcileError, SnapshotError},
        facts::{FoundMarks, SnapshotFacts, SnapshotMarks, WithFacts},
        last_reconcile::AppliedObject,
        object_version::ObjectVersion,
        owner,
        snapshot::{KEYS, Snapshot, is_started, is_to_recreate},
        status,
        vouch::{Digests, Trust},
    },
};

impl Snapshots for LiveCluster<'_> {
    async fn snapshot(
        &mut self,
        job: &AdmittedTrainJob,
    ) -> Result<Option<WithFacts<SnapshotFacts, Snapshot>>> {
        let name = Snapshot::name(&self.key.name);
        let Some(map) = self.read::<ConfigMap>(&name).await? else {
            return Ok(None);
        };
        let job = job.job.clone();
        Snapshot::check_owner(&map, &job)?;
        let texts = map.data.iter().flat_map(BTreeMap::values).map(String::len);
        // A value takes at least two bytes of its text.
        self.reserve_memory(texts.sum::<usize>() / 2).await;
        let (voucher, has_run) = (self.voucher.clone(), status::has_run(&self.job.status));
        let most = self.pinned.most_objects();
        let read = move |_: &Renderer, _: &Deadline| {
            let started = has_run || is_started(&map.metadata);
            let digests = map.data.as_ref().map(Digests::of);
            let trust = digests.as_ref().map_or(Some(Trust::Nothing), |digests| {
                voucher.trust(digests, started)
            });
            let trust = trust.ok_or_else(|| SnapshotError::changed(&job.metadata.name))?;
            let mut snapshot = Snapshot::from_config_map(&map, digests, &job, most)?;
            snapshot.limit(trust);
            Ok::<_, SnapshotError>((snapshot, ObjectVersion::of(&map.metadata)))
        };
        let (snapshot, at) = self.on_thread(read).await??;
        Ok(Some(WithFacts {
            facts: snapshot.facts_at(at),
            value: snapshot,
        }))
    }

    async fn snapshot_marks(&mut self) -> Result<FoundMarks> {
        let name = Snapshot::name(&self.key.name);
        let found = self.config_maps().get_metadata_opt(&name).await;
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
        let Some(metadata) = found.map(|found| found.metadata) else {
            return Ok(FoundMarks::Missing);
        };
        if !owner::is_of(&self.job.uid, &metadata) {
            let job = &self.key.name;
            let error = owner::foreign(job, "ConfigMap", &name, &metadata);
            return Ok(FoundMarks::Foreign(error));
        }
        Ok(FoundMarks::Ours(SnapshotMarks {
            at: ObjectVersion::of(&metadata),
            started: is_started(&metadata),
            recreate: is_to_recreate(&metadata),
        }))
    }

    async fn listed_objects(&mut self) -> Result<Arc<[AppliedObject]>> {
        let name = &self.key.name;
        let found: Option<ConfigMap> = self.read(&Snapshot::name(name)).await?;
        let most = self.pinned.most_objects();
        let listed = match found.filter(|map| owner::is_of(&self.job.uid, &map.metadata)) {
            Some(map) => Snapshot::listed(&map, name, most)?,
            None => Vec::new(),
        };
        Ok(AppliedObject::unknown(&listed))
    }

    async fn create_snapshot(&mut self, rendering: &mut RenderedJobSet) -> Result<SnapshotFacts> {
        let map = self.config_map(rendering).await?;
        let what = || format!("creating ConfigMap `{}`", Snapshot::name(&self.key.name));
        let created = self.config_maps().create(&creating(), &map).await;
        let created = created.map_err(|error| ReconcileError::api(what(), error))?;
        Ok(rendering.written(&created))
    }

    async fn replace_snapshot(
        &mut self,
        rendering: &mut RenderedJobSet,
        at: &ObjectVersion,
    ) -> Result<SnapshotFacts> {
        let name = Snapshot::name(&self.key.name);
        let failed = |error| ReconcileError::api(format!("replacing ConfigMap `{name}`"), error);
        let mut map = self.config_map(rendering).await?;
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
        let replaced = self.config_maps().patch(&name, &merging(), &patch).await;
        Ok(rendering.written(&replaced.map_err(failed)?))
    }

    async fn mark_snapshot(
        &mut self,
        to_set: MarksToSet,
        at: &ObjectVersion,
    ) -> Result<ObjectVersion> {
        let name = Snapshot::name(&self.key.name);
        let mut annotations = Map::new();
        if to_set.started {
            annotations.insert(STARTED.to_owned(), json!("true"));
        }
        if let Some(recreate) = to_set.recreate {
            let value = if recreate { json!("true") } else { Value::Null };
            annotations.insert(RECREATE.to_owned(), value);
        }
        let mut patch = json!({
            "metadata": {"uid": at.uid, "resourceVersion": at.version, "annotations": annotations},
        });
        if let (true, Some(patch)) = (to_set.started, patch.as_object_mut()) {
            patch.insert("immutable".to_owned(), json!(true));
        }
        let patch = Patch::Merge(&patch);
        let marked = self.config_maps().patch(&name, &merging(), &patch).await;
        let marked = marked
            .map_err(|error| ReconcileError::api(format!("marking ConfigMap `{name}`"), error))?;
        Ok(ObjectVersion::of(&marked.metadata))
    }
}

impl LiveCluster<'_> {
    /// Returns the ConfigMap with the snapshot of the rendering.
    async fn config_map(&self, rendering: &RenderedJobSet) -> Result<ConfigMap> {
        let snapshot = rendering.snapshot.clone();
        let (job, namespace) = (rendering.job.clone(), self.key.namespace.clone());
        self.on_thread(move |_, _| snapshot.to_config_map(&job, &namespace))
            .await
    }
}

impl RenderedJobSet {
    /// Notes that its snapshot was written as this ConfigMap.
    fn written(&mut self, map: &ConfigMap) -> SnapshotFacts {
        self.snapshot.stored = map.data.as_ref().map(Digests::of);
        self.snapshot_written = true;
        // The JobSet does not vouch for it yet.
        self.snapshot.trust = Trust::Nothing;
        self.snapshot.facts_at(ObjectVersion::of(&map.metadata))
    }
}

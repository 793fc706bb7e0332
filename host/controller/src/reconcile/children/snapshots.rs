//! The snapshot of a TrainJob in the cluster.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use super::Pass;
use crate::queue::Key;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::snapshot::{STARTED, Snapshot, Written, is_started};
use crate::reconcile::{Reconciler, creating, merging, owner};

impl Reconciler {
    /// Has the snapshot of the TrainJob of that UID say that the JobSet has run; one that is somebody else's is left as it is, and
    /// returned is whose it is.
    pub(super) async fn mark_started(
        &self,
        key: &Key,
        uid: &str,
    ) -> Result<Option<ReconcileError>, ReconcileError> {
        let maps: Api<ConfigMap> = self.api(key);
        let name = Snapshot::name(&key.name);
        let found = maps.get_metadata_opt(&name).await;
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
        match found.map(|found| found.metadata) {
            Some(found) if !owner::is_of(uid, &found) => {
                Ok(Some(owner::foreign(&key.name, "ConfigMap", &name, &found)))
            }
            Some(found) if !is_started(&found) => {
                self.seal(key, &Written::of(&found)).await.map(|()| None)
            }
            // There is none where the JobSet is older than snapshots are, or somebody deleted it.
            _ => Ok(None),
        }
    }

    /// Marks a snapshot as started; it can't change any more then.
    async fn seal(&self, key: &Key, written: &Written) -> Result<(), ReconcileError> {
        let maps: Api<ConfigMap> = self.api(key);
        let name = Snapshot::name(&key.name);
        let started = json!({
            "metadata": {
                "uid": written.uid, "resourceVersion": written.version,
                "annotations": {STARTED: "true"},
            },
            "immutable": true,
        });
        let sealed = maps.patch(&name, &merging(), &Patch::Merge(&started)).await;
        sealed
            .map(drop)
            .map_err(|error| ReconcileError::api(format!("marking ConfigMap `{name}`"), error))
    }
}

impl Pass<'_> {
    pub(super) async fn post_snapshot(&self, snapshot: &Snapshot) -> Result<(), ReconcileError> {
        let map = snapshot.to_config_map(&self.job, &self.key.namespace);
        let what = || format!("creating ConfigMap `{}`", Snapshot::name(&self.key.name));
        let created = self.config_maps().create(&creating(), &map).await;
        created
            .map(drop)
            .map_err(|error| ReconcileError::api(what(), error))
    }

    /// The snapshot that is there. Where only the TrainJob's status says that its JobSet has run, the snapshot is marked: the
    /// counts of the next JobSet take the place of what the status says.
    pub(super) async fn snapshot(&self) -> Result<Option<Snapshot>, ReconcileError> {
        let Some(snapshot) = self.read_snapshot().await? else {
            return Ok(None);
        };
        if self.has_run && !snapshot.started {
            return self.started(snapshot).await.map(Some);
        }
        Ok(Some(snapshot))
    }

    pub(super) async fn read_snapshot(&self) -> Result<Option<Snapshot>, ReconcileError> {
        let name = Snapshot::name(&self.key.name);
        let found: Option<ConfigMap> = self.reconciler.read(self.key, &name).await?;
        let Some(map) = found else {
            return Ok(None);
        };
        if !owner::owns(&self.job, &map.metadata) {
            return Err(owner::foreign(
                &self.key.name,
                "ConfigMap",
                &name,
                &map.metadata,
            ));
        }
        Ok(Some(Snapshot::from_config_map(&map, &self.job)?))
    }

    /// Puts a snapshot in the place of the one that it was made from.
    pub(super) async fn replace_snapshot(&self, snapshot: &Snapshot) -> Result<(), ReconcileError> {
        let name = Snapshot::name(&self.key.name);
        let failed = |error| ReconcileError::api(format!("replacing ConfigMap `{name}`"), error);
        let mut map = snapshot.to_config_map(&self.job, &self.key.namespace);
        if let Some(written) = &snapshot.written {
            map.metadata.uid.clone_from(&written.uid);
            map.metadata.resource_version.clone_from(&written.version);
        }
        let patch = Patch::Merge(&map);
        let replaced = self.config_maps().patch(&name, &merging(), &patch).await;
        replaced.map(drop).map_err(failed)
    }

    /// Has the snapshot that is there say that the JobSet has run.
    pub(super) async fn started(&self, snapshot: Snapshot) -> Result<Snapshot, ReconcileError> {
        if let Some(written) = &snapshot.written {
            self.reconciler.seal(self.key, written).await?;
        }
        Ok(snapshot.of_a_started_job())
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        self.reconciler.api(self.key)
    }
}

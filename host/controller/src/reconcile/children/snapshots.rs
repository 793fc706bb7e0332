//! The snapshot of a TrainJob in the cluster.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, Preconditions};

use super::Pass;
use crate::reconcile::error::{ReconcileError, unless_gone};
use crate::reconcile::snapshot::Snapshot;
use crate::reconcile::{creating, merging, owner};

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
        let Some(mut snapshot) = self.read_snapshot().await? else {
            return Ok(None);
        };
        if self.has_run && !snapshot.started {
            self.reconciler.mark_started(self.key).await?;
            snapshot = snapshot.of_a_started_job();
        }
        Ok(Some(snapshot))
    }

    pub(super) async fn read_snapshot(&self) -> Result<Option<Snapshot>, ReconcileError> {
        let name = Snapshot::name(&self.key.name);
        let found = self.config_maps().get_opt(&name).await;
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
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
        let Some(written) = &snapshot.written else {
            return self.post_snapshot(snapshot).await;
        };
        if !written.immutable {
            let mut map = snapshot.to_config_map(&self.job, &self.key.namespace);
            map.metadata.uid.clone_from(&written.uid);
            map.metadata.resource_version.clone_from(&written.version);
            let patch = Patch::Merge(&map);
            let replaced = self.config_maps().patch(&name, &merging(), &patch).await;
            return replaced.map(drop).map_err(failed);
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: written.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let deleted = self.config_maps().delete(&name, &params).await;
        unless_gone(deleted).map_err(failed)?;
        self.post_snapshot(snapshot).await
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        self.reconciler.api(self.key)
    }
}

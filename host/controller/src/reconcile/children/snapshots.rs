//! The snapshot of a TrainJob in the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::Patch;
use serde_json::{Value, json};
use trainyard_model::deadline::Deadline;
use trainyard_render::{Renderer, Warning};

use super::{Pass, warning};
use crate::annotations::{RECREATE, STARTED};
use crate::queue::Key;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::snapshot::{Snapshot, Written, is_started, is_to_recreate};
use crate::reconcile::{Reconciler, creating, merging, owner};
use crate::watch::JobSetState;

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
                self.seal(key, &Written::of(&found), false).await?;
                Ok(None)
            }
            // There is none where the JobSet is older than snapshots are, or somebody deleted it.
            _ => Ok(None),
        }
    }

    /// Marks a snapshot as started; it can't change any more then. With `recreate`, it says too that its JobSet was deleted before it
    /// ended.
    async fn seal(
        &self,
        key: &Key,
        written: &Written,
        recreate: bool,
    ) -> Result<Written, ReconcileError> {
        let mut annotations = json!({STARTED: "true"});
        if recreate && let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(RECREATE.to_owned(), json!("true"));
        }
        let patch = json!({"metadata": {"annotations": annotations}, "immutable": true});
        self.mark(key, written, patch).await
    }

    /// Takes from the snapshot of the TrainJob of that UID, if it is there, that its JobSet was deleted: another one runs.
    pub(super) async fn take_recreate_off(
        &self,
        key: &Key,
        uid: &str,
    ) -> Result<(), ReconcileError> {
        let maps: Api<ConfigMap> = self.api(key);
        let name = Snapshot::name(&key.name);
        let found = maps.get_metadata_opt(&name).await;
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
        let found = found.map(|found| found.metadata);
        if let Some(found) = found.filter(|it| owner::is_of(uid, it) && is_to_recreate(it)) {
            self.unmark_recreate(key, &Written::of(&found)).await?;
        }
        Ok(())
    }

    async fn unmark_recreate(
        &self,
        key: &Key,
        written: &Written,
    ) -> Result<Written, ReconcileError> {
        let patch = json!({"metadata": {"annotations": {RECREATE: null}}});
        self.mark(key, written, patch).await
    }

    async fn mark(
        &self,
        key: &Key,
        written: &Written,
        mut patch: Value,
    ) -> Result<Written, ReconcileError> {
        let maps: Api<ConfigMap> = self.api(key);
        let name = Snapshot::name(&key.name);
        if let Some(metadata) = patch
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
        {
            metadata.insert("uid".to_owned(), json!(written.uid));
            metadata.insert("resourceVersion".to_owned(), json!(written.version));
        }
        let marked = maps.patch(&name, &merging(), &Patch::Merge(&patch)).await;
        marked
            .map(|map| Written::of(&map.metadata))
            .map_err(|error| ReconcileError::api(format!("marking ConfigMap `{name}`"), error))
    }
}

impl Pass<'_> {
    pub(super) async fn post_snapshot(
        &self,
        snapshot: &mut Snapshot,
    ) -> Result<(), ReconcileError> {
        let map = self.config_map(snapshot).await?;
        let what = || format!("creating ConfigMap `{}`", Snapshot::name(&self.key.name));
        let created = self.config_maps().create(&creating(), &map).await;
        let created = created.map_err(|error| ReconcileError::api(what(), error))?;
        snapshot.written = Some(Written::of(&created.metadata));
        Ok(())
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

    /// The snapshot of a suspended JobSet. The runtime as it is now takes the place of one that is missing or can't be used.
    ///
    /// Of a JobSet that has never run, nothing is frozen: it waits for whatever it can't be rendered without. Any other can go on
    /// without its snapshot, and without a runtime too: then there is `None`. A snapshot that can't be used is left as it is, with a
    /// warning.
    pub(super) async fn snapshot_or_another(
        &self,
        found: &JobSetState,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Snapshot>, ReconcileError> {
        let has_never_run = self.has_never_run(found);
        let another = match self.snapshot().await {
            Ok(Some(snapshot)) => Ok(snapshot),
            Ok(None) if has_never_run => self.fresh_snapshot().await,
            Ok(None) => self.snapshot_again().await,
            Err(error @ ReconcileError::Foreign { .. }) if has_never_run => Err(error),
            Err(error @ ReconcileError::Snapshot(_))
                if has_never_run && let Some(written) = self.unstarted().await? =>
            {
                warnings.push(warning(&error));
                let fresh = self.fresh_snapshot().await;
                fresh.map(|snapshot| snapshot.in_place_of(written))
            }
            Err(error @ (ReconcileError::Snapshot(_) | ReconcileError::Foreign { .. })) => {
                warnings.push(warning(&error));
                let fresh = self.fresh_snapshot().await;
                fresh.map(Snapshot::of_a_started_job)
            }
            Err(error) => return Err(error),
        };
        match another {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(error) if error.is_of_input() && !has_never_run => {
                warnings.push(warning(&error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a suspended JobSet is known to have never run: so it says what it was rendered from. Any other may have run.
    pub(super) fn has_never_run(&self, found: &JobSetState) -> bool {
        !self.has_run && found.inputs.is_some()
    }

    /// Where the TrainJob's snapshot stands, unless it says that its JobSet has run.
    async fn unstarted(&self) -> Result<Option<Written>, ReconcileError> {
        let name = Snapshot::name(&self.key.name);
        let found = self.config_maps().get_metadata_opt(&name).await;
        let found = found
            .map_err(|error| ReconcileError::api(format!("reading ConfigMap `{name}`"), error))?;
        let found = found.map(|found| found.metadata);
        let ours = found.filter(|it| owner::owns(&self.job, it) && !is_started(it));
        Ok(ours.map(|found| Written::of(&found)))
    }

    /// Writes a snapshot: in the place of the one that it was made from, if there is one.
    pub(super) async fn write_snapshot(
        &self,
        snapshot: &mut Snapshot,
    ) -> Result<(), ReconcileError> {
        match snapshot.written {
            Some(_) => self.replace_snapshot(snapshot).await,
            None => self.post_snapshot(snapshot).await,
        }
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
        let texts = map.data.iter().flat_map(BTreeMap::values).map(String::len);
        // A value takes four bytes or more, but for empty lists.
        self.make_room(texts.sum::<usize>() / 4).await;
        let job = self.job.clone();
        let read = move |renderer: &Renderer, _: &Deadline| {
            Snapshot::from_config_map(&map, &job, renderer.most_objects())
        };
        Ok(Some(self.on_thread(read).await??))
    }

    /// Puts a snapshot in the place of the one that it was made from.
    pub(super) async fn replace_snapshot(
        &self,
        snapshot: &mut Snapshot,
    ) -> Result<(), ReconcileError> {
        let name = Snapshot::name(&self.key.name);
        let failed = |error| ReconcileError::api(format!("replacing ConfigMap `{name}`"), error);
        let mut map = self.config_map(snapshot).await?;
        if let Some(written) = &snapshot.written {
            map.metadata.uid.clone_from(&written.uid);
            map.metadata.resource_version.clone_from(&written.version);
        }
        let patch = Patch::Merge(&map);
        let replaced = self.config_maps().patch(&name, &merging(), &patch).await;
        let replaced = replaced.map_err(failed)?;
        snapshot.written = Some(Written::of(&replaced.metadata));
        Ok(())
    }

    /// Has the snapshot that is there say that the JobSet has run.
    pub(super) async fn started(&self, mut snapshot: Snapshot) -> Result<Snapshot, ReconcileError> {
        if let Some(written) = &snapshot.written {
            let written = self.reconciler.seal(self.key, written, false).await?;
            snapshot.written = Some(written);
        }
        Ok(snapshot.of_a_started_job())
    }

    /// The snapshot by which the JobSet of a TrainJob that has run is made again. It says so first: a controller that starts before
    /// there is another JobSet has not seen how the last one went.
    ///
    /// # Errors
    /// The JobSet may have ended: it would run again.
    pub(super) async fn to_recreate(
        &self,
        mut snapshot: Snapshot,
    ) -> Result<Snapshot, ReconcileError> {
        self.has_not_ended(Some(&snapshot))?;
        let recreate = self.was_deleted && !snapshot.recreate;
        let has_run = self.has_run || snapshot.started;
        if let Some(written) = snapshot.written.as_ref().filter(|_| has_run)
            && (recreate || !snapshot.started)
        {
            let written = self.reconciler.seal(self.key, written, recreate).await?;
            snapshot.written = Some(written);
            snapshot.recreate |= recreate;
            snapshot.started = true;
        }
        Ok(snapshot)
    }

    /// Fails if the JobSet that is gone has run, and may have ended. One that was suspended has not, nor has one that was seen to be
    /// deleted before.
    pub(super) fn has_not_ended(&self, snapshot: Option<&Snapshot>) -> Result<(), ReconcileError> {
        let is = |holds: fn(&Snapshot) -> bool| snapshot.is_some_and(holds);
        let has_run = self.has_run || is(|snapshot| snapshot.started);
        let has_not_ended =
            self.is_suspended || self.was_deleted || is(|snapshot| snapshot.recreate);
        if has_run && !has_not_ended {
            let name = self.key.name.to_string();
            return Err(ReconcileError::EndIsUnknown { name });
        }
        Ok(())
    }

    /// Notes what a controller that starts can't see any more: that a JobSet has run which goes by itself when it has ended, and that
    /// there is another in the place of one that was deleted.
    pub(super) async fn note_made(
        &self,
        mut snapshot: Snapshot,
        job_set: &Value,
    ) -> Result<(), ReconcileError> {
        // One that was deleted since is made again, also by a controller that starts before that.
        if self.is_there() {
            self.take_recreate_off(&mut snapshot).await?;
        }
        let Some(written) = &snapshot.written else {
            return Ok(());
        };
        let ttl = job_set.pointer("/spec/ttlSecondsAfterFinished");
        let goes = ttl.is_some_and(|seconds| !seconds.is_null()) && !self.job.suspend;
        if goes && !snapshot.started {
            self.reconciler.seal(self.key, written, false).await?;
        }
        Ok(())
    }

    /// Whether no watch has told that the JobSet which was just made is gone.
    fn is_there(&self) -> bool {
        let job_sets = &self.reconciler.stores.job_sets;
        job_sets.get(self.key).is_some() || job_sets.unreadable(self.key).is_some()
    }

    /// Takes from a snapshot that its JobSet was deleted: there is another one.
    pub(super) async fn take_recreate_off(
        &self,
        snapshot: &mut Snapshot,
    ) -> Result<(), ReconcileError> {
        if let Some(written) = snapshot.written.as_ref().filter(|_| snapshot.recreate) {
            let written = self.reconciler.unmark_recreate(self.key, written).await?;
            snapshot.written = Some(written);
            snapshot.recreate = false;
        }
        Ok(())
    }

    /// The ConfigMap of a snapshot.
    async fn config_map(&self, snapshot: &Snapshot) -> Result<ConfigMap, ReconcileError> {
        let (snapshot, job) = (snapshot.clone(), self.job.clone());
        let namespace = self.key.namespace.clone();
        self.on_thread(move |_, _| snapshot.to_config_map(&job, &namespace))
            .await
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        self.reconciler.api(self.key)
    }
}

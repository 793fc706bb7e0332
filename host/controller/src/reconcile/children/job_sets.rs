//! A TrainJob's JobSet: made, changed while it may change, and let go again.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use trainyard_api::{TrainJob, merge, names};
use trainyard_render::Warning;

use super::{Pass, resource};
use crate::queue::Key;
use crate::reconcile::error::{ReconcileError, code};
use crate::reconcile::snapshot::Snapshot;
use crate::reconcile::{MANAGER, Reconciler, job_set, merging, owner};
use crate::watch::{JobSetObject, JobSetState, Watched as _};

impl Reconciler {
    pub(super) async fn patch_job_set(
        &self,
        key: &Key,
        patch: &Patch<&Value>,
        params: &PatchParams,
    ) -> Result<(), ReconcileError> {
        let api: Api<JobSetObject> = self.api(key);
        let written = api.patch(&key.name, params, patch).await;
        let written = written.map_err(|error| {
            ReconcileError::api(format!("writing JobSet `{}`", key.name), error)
        })?;
        if let Some((key, state)) = written.slim() {
            self.stores.job_sets.put(key, state);
        }
        Ok(())
    }

    /// Why a JobSet of the TrainJob's name is none of its own.
    pub(super) async fn foreign_job_set(
        &self,
        key: &Key,
    ) -> Result<ReconcileError, ReconcileError> {
        Ok(match self.live_job_set(key).await? {
            Some(found) => owner::foreign(names::JOB_SET, &key.name, found.meta()),
            None => ReconcileError::Stale {
                kind: names::JOB_SET.to_owned(),
                name: key.name.to_string(),
            },
        })
    }

    pub(super) async fn live_job_set(
        &self,
        key: &Key,
    ) -> Result<Option<JobSetObject>, ReconcileError> {
        let found = self.api(key).get_opt(&key.name).await;
        found.map_err(|error| ReconcileError::api(format!("reading JobSet `{}`", key.name), error))
    }
}

impl Pass<'_> {
    /// Makes everything of a TrainJob that has no JobSet.
    pub(super) async fn make(&self) -> Result<Vec<Warning>, ReconcileError> {
        let made = match self.made_now().await {
            Ok(made) => match self.post_snapshot(&made.snapshot).await {
                Ok(()) => made,
                Err(error @ ReconcileError::Conflict { .. }) => self.remade(error).await?,
                Err(error) => return Err(error),
            },
            // It came when its runtime was another one, or was there.
            Err(error) if error.is_of_input() => self.remade(error).await?,
            Err(error) => return Err(error),
        };
        self.apply_beside(&made.rendered.objects).await?;
        let (key, job_set) = (self.key, self.owned(made.rendered.job_set));
        let params = PatchParams::apply(MANAGER);
        let applied = self
            .reconciler
            .patch_job_set(key, &Patch::Apply(&job_set), &params)
            .await;
        let applied = match applied {
            // Fields of another manager, or another controller's reference: somebody else made one of this name.
            Err(error @ ReconcileError::Conflict { .. }) => self.taken(error).await,
            Err(ReconcileError::Api { what, problem }) if code(&problem) == Some(422) => {
                self.taken(ReconcileError::Api { what, problem }).await
            }
            other => other,
        };
        applied.map(|()| made.rendered.warnings)
    }

    /// Brings a suspended JobSet to where it should be.
    pub(super) async fn change(&self, found: &JobSetState) -> Result<Vec<Warning>, ReconcileError> {
        let snapshot = match self.read_snapshot().await? {
            Some(snapshot) => snapshot,
            // A JobSet without a snapshot is older than snapshots are: nobody knows whether it has run.
            None => self.fresh_snapshot()?.of_a_started_job(),
        };
        if snapshot.started || snapshot.plan.is_none() {
            self.resume(found, snapshot).await?;
            return Ok(Vec::new());
        }
        let (made, same) = self.render(snapshot).await?;
        if !same {
            self.replace_snapshot(&made.snapshot).await?;
        }
        self.apply_beside(&made.rendered.objects).await?;
        let mut job_set = self.owned(made.rendered.job_set);
        if let Some(metadata) = job_set.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(found.uid));
        }
        let params = PatchParams::apply(MANAGER).force();
        let (reconciler, key) = (self.reconciler, self.key);
        let applied = reconciler
            .patch_job_set(key, &Patch::Apply(&job_set), &params)
            .await;
        let changed = match applied {
            // JobSet refuses the change; a suspended one without pods gives way to another. Its end wakes the TrainJob again.
            Err(ReconcileError::Api { problem, .. })
                if is_refused(&problem) && !found.is_active() =>
            {
                let version = Some(found.resource_version());
                reconciler.delete_job_set(key, &found.uid, version).await
            }
            other => other,
        };
        changed.map(|()| made.rendered.warnings)
    }

    /// Lets a JobSet that has run go on, where its pods are to be placed now. While it stays suspended, nothing changes.
    async fn resume(&self, found: &JobSetState, snapshot: Snapshot) -> Result<(), ReconcileError> {
        if self.job.suspend {
            return Ok(());
        }
        let api: Api<DynamicObject> = Api::namespaced_with(
            self.reconciler.client.clone(),
            &self.key.namespace,
            &resource(names::JOB_SET_API_VERSION, names::JOB_SET),
        );
        let live = api.get(&self.key.name).await;
        let live = live.map_err(|error| {
            ReconcileError::api(format!("reading JobSet `{}`", self.key.name), error)
        })?;
        let version = live.metadata.resource_version.clone().unwrap_or_default();
        let spec = live.data.get("spec").cloned().unwrap_or_default();
        let wanted = match self.render(snapshot).await {
            Ok((made, true)) => made
                .rendered
                .job_set
                .get("spec")
                .cloned()
                .unwrap_or_default(),
            // Its plugins are gone or not what they were: the TrainJob's own patches still say where its pods go.
            Ok((_, false)) | Err(ReconcileError::Render { .. }) => patched(&self.job, &spec),
            Err(error) => return Err(error),
        };
        let jobs = job_set::rescheduled(&spec, &wanted);
        let patch = job_set::resumption(&found.uid, &version, jobs);
        self.reconciler
            .patch_job_set(self.key, &Patch::Merge(&patch), &merging())
            .await
    }

    /// The error, or whose the JobSet of this name is.
    async fn taken(&self, error: ReconcileError) -> Result<(), ReconcileError> {
        match self.reconciler.live_job_set(self.key).await {
            Ok(Some(found)) if !owner::owns(&self.job, found.meta()) => {
                Err(owner::foreign(names::JOB_SET, &self.key.name, found.meta()))
            }
            _ => Err(error),
        }
    }
}

/// The live spec with the TrainJob's own patches, each as far as it can be merged.
fn patched(job: &TrainJob, spec: &Value) -> Value {
    let patches = job
        .runtime_patches
        .iter()
        .filter_map(|patch| patch.spec.as_ref());
    patches.fold(spec.clone(), |spec, patch| {
        merge::strategic(&spec, patch).unwrap_or(spec)
    })
}

/// Whether the API server, or JobSet's webhook, says that the object can't change in this way.
fn is_refused(error: &kube::Error) -> bool {
    matches!(code(error), Some(400 | 403 | 422))
}

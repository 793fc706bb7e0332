//! A TrainJob's JobSet: made, changed while it may change, and let go again.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use trainyard_api::{TrainJob, merge, names};

use super::beside::{Held, Stage};
use super::{Pass, Placed};
use crate::queue::Key;
use crate::reconcile::error::{ReconcileError, code};
use crate::reconcile::snapshot::{Listed, Snapshot};
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
            Some(found) => owner::foreign(&key.name, names::JOB_SET, &key.name, found.meta()),
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
    pub(super) async fn make(&self) -> Result<Placed, ReconcileError> {
        let made = self.made().await?;
        let objects = &made.rendered.objects;
        let objects = self.apply_beside(objects, Stage::Fresh).await?;
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
        applied.map(|()| Placed {
            warnings: made.rendered.warnings,
            objects: Some(objects),
        })
    }

    /// Brings a suspended JobSet to where it should be.
    pub(super) async fn change(&self, found: &JobSetState) -> Result<Placed, ReconcileError> {
        let snapshot = match self.snapshot().await? {
            Some(snapshot) if !snapshot.started && snapshot.plan.is_some() => snapshot,
            // A JobSet without a snapshot or a plan is older than they are: nobody knows whether it has run.
            snapshot => {
                return Ok(Placed {
                    warnings: Vec::new(),
                    objects: self.resume(found, snapshot).await?,
                });
            }
        };
        let made = self.render(snapshot).await?;
        if made.renewed {
            self.replace_snapshot(&made.snapshot).await?;
        }
        let objects = &made.rendered.objects;
        let objects = self.apply_beside(objects, Stage::Fresh).await?;
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
        changed.map(|()| Placed {
            warnings: made.rendered.warnings,
            objects: Some(objects),
        })
    }

    /// Lets a JobSet that has run go on, where its pods are to be placed now. While it stays suspended, nothing of it changes. The
    /// objects beside it follow as their modes let, and are known from then on.
    async fn resume(
        &self,
        found: &JobSetState,
        snapshot: Option<Snapshot>,
    ) -> Result<Option<Arc<[Held]>>, ReconcileError> {
        let listed = snapshot.as_ref().map(|snapshot| snapshot.objects.clone());
        let listed = listed.unwrap_or_default();
        let follows = |listed: &Listed| Stage::Suspended.lets_change(listed.apply);
        if self.job.suspend && !listed.iter().any(follows) {
            return Ok(Some(Held::by_name(&listed)));
        }
        let rendered = match snapshot.filter(|snapshot| snapshot.plan.is_some()) {
            None => None,
            Some(snapshot) => match self.render(snapshot).await {
                Ok(made) => Some(made.rendered),
                // Its plugins are gone or not what they were: the TrainJob's own patches still say where its pods go.
                Err(ReconcileError::PlanIsPinned { .. } | ReconcileError::Render { .. }) => None,
                Err(error) => return Err(error),
            },
        };
        let objects = match &rendered {
            None => Held::by_name(&listed),
            Some(rendered) => {
                let objects = rendered.objects.iter();
                let objects = objects.filter(|object| listed.contains(&Listed::of(object)));
                let objects: Vec<_> = objects.collect();
                self.apply_beside(objects, Stage::Suspended).await?
            }
        };
        if !self.job.suspend {
            self.let_go(found, rendered.map(|rendered| rendered.job_set))
                .await?;
        }
        Ok(Some(objects))
    }

    /// Lets a JobSet that has run go on, with the scheduling of what was rendered.
    async fn let_go(
        &self,
        found: &JobSetState,
        rendered: Option<Value>,
    ) -> Result<(), ReconcileError> {
        let (api_version, kind) = (names::JOB_SET_API_VERSION, names::JOB_SET);
        let api = self.reconciler.dynamic(self.key, api_version, kind);
        let live = api.get(&self.key.name).await;
        let live = live.map_err(|error| {
            ReconcileError::api(format!("reading JobSet `{}`", self.key.name), error)
        })?;
        let version = live.metadata.resource_version.clone().unwrap_or_default();
        let spec = live.data.get("spec").cloned().unwrap_or_default();
        let wanted = match rendered {
            Some(rendered) => rendered.get("spec").cloned().unwrap_or_default(),
            None => patched(&self.job, &spec),
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
            Ok(Some(found)) if !owner::owns(&self.job, found.meta()) => Err(owner::foreign(
                &self.key.name,
                names::JOB_SET,
                &self.key.name,
                found.meta(),
            )),
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

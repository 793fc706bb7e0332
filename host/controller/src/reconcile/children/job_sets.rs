//! A TrainJob's JobSet: made, changed while it may change, and let go again.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::response::{Status, reason};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use trainyard_api::{TrainJob, merge, names};

use super::beside::{Held, Stage};
use super::{Pass, Placed, warning};
use crate::queue::Key;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::snapshot::{Listed, Snapshot, is_started};
use crate::reconcile::{MANAGER, Reconciler, creating, job_set, merging, owner};
use crate::watch::{JobSetObject, JobSetState, answer, objects};

impl Reconciler {
    pub(super) async fn patch_job_set(
        &self,
        key: &Key,
        patch: &Patch<&Value>,
        params: &PatchParams,
    ) -> Result<(), ReconcileError> {
        let job_sets = objects::<JobSetObject>(&key.namespace);
        let request = job_sets.patch(&key.name, params, patch);
        let written = answer::<JobSetObject>(&self.client, request).await;
        let written = written.map_err(|error| {
            ReconcileError::api(format!("writing JobSet `{}`", key.name), error)
        })?;
        if let Some((key, read)) = written {
            self.stores.job_sets.put_read(key, read);
        }
        Ok(())
    }

    /// Why a JobSet of the TrainJob's name is none of its own.
    pub(super) async fn foreign_job_set(
        &self,
        key: &Key,
    ) -> Result<ReconcileError, ReconcileError> {
        let found: Option<JobSetObject> = self.read(key, &key.name).await?;
        Ok(match found {
            Some(found) => owner::foreign(&key.name, names::JOB_SET, &key.name, found.meta()),
            None => ReconcileError::Stale {
                kind: names::JOB_SET.to_owned(),
                name: key.name.to_string(),
            },
        })
    }
}

/// A suspended JobSet, as the API server has it.
struct Suspended {
    uid: String,
    version: String,
    /// Whether it was let go before.
    started: bool,
    /// Whether pods of it run or are about to end.
    is_active: bool,
    spec: Value,
}

impl Suspended {
    /// That of the object; none where it runs, or is about to go.
    fn of(mut live: DynamicObject) -> Option<Self> {
        let spec = live.data.get_mut("spec").map(Value::take)?;
        let is_suspended = spec.get("suspend") == Some(&Value::Bool(true));
        let counts = live.data.pointer("/status/replicatedJobsStatus");
        let mut counts = counts.and_then(Value::as_array).into_iter().flatten();
        let active = |count: &Value| count.get("active").and_then(Value::as_i64);
        (is_suspended && live.metadata.deletion_timestamp.is_none()).then_some(Self {
            started: is_started(&live.metadata),
            is_active: counts.any(|count| active(count) > Some(0)),
            uid: live.metadata.uid?,
            version: live.metadata.resource_version?,
            spec,
        })
    }
}

fn follows(listed: &Listed) -> bool {
    Stage::Suspended.lets_change(listed.apply)
}

impl Pass<'_> {
    /// Makes everything of a TrainJob that has no JobSet.
    pub(super) async fn make(&self) -> Result<Placed, ReconcileError> {
        let made = self.made().await?;
        let objects = &made.rendered.objects;
        let objects = self.apply_beside(objects, Stage::Fresh).await?;
        let (key, job_set) = (self.key, self.marked(made.rendered.job_set));
        let params = PatchParams::apply(MANAGER);
        let applied = self
            .reconciler
            .patch_job_set(key, &Patch::Apply(&job_set), &params)
            .await;
        let applied = match applied {
            // Fields of another manager, or another controller's reference: somebody else made one of this name.
            Err(error)
                if matches!(error, ReconcileError::Conflict { .. })
                    || error.status() == Some(422) =>
            {
                self.taken(error).await
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
        let mut warnings = Vec::new();
        let mut snapshot = self.snapshot().await?;
        if snapshot.is_none() {
            snapshot = match self.snapshot_again().await {
                Ok(snapshot) => Some(snapshot),
                // The JobSet can go on without.
                Err(error) if error.is_of_input() => {
                    warnings.push(warning(&error));
                    None
                }
                Err(error) => return Err(error),
            };
        }
        // A JobSet without a snapshot or a plan is older than they are: nobody knows whether it has run.
        let is_new = |snapshot: &Snapshot| !snapshot.started && snapshot.plan.is_some();
        let mut placed = match snapshot {
            Some(snapshot) if is_new(&snapshot) => {
                let live = self.suspended(found).await?;
                if live.started {
                    // Somebody else suspended it, and nobody noted that it ran.
                    let snapshot = self.started(snapshot).await?;
                    self.resume(live, Some(snapshot)).await?
                } else {
                    self.renew(live, snapshot).await?
                }
            }
            snapshot => {
                let listed = snapshot.iter().flat_map(|snapshot| &snapshot.objects);
                let listed: Vec<_> = listed.cloned().collect();
                if self.job.suspend && !listed.iter().any(follows) {
                    return Ok(Placed {
                        warnings,
                        objects: Some(Held::by_name(&listed)),
                    });
                }
                self.resume(self.suspended(found).await?, snapshot).await?
            }
        };
        placed.warnings.append(&mut warnings);
        Ok(placed)
    }

    /// The JobSet as the API server has it, if it is still suspended: what is known of it may be old, and what it runs with stays
    /// as it is.
    async fn suspended(&self, found: &JobSetState) -> Result<Suspended, ReconcileError> {
        let what = || format!("JobSet `{}`", self.key.name);
        let live = self.job_sets().get_opt(&self.key.name).await;
        let live =
            live.map_err(|error| ReconcileError::api(format!("reading {}", what()), error))?;
        let is_same = |live: &DynamicObject| live.metadata.uid.as_deref() == Some(&*found.uid);
        let live = live.filter(is_same).and_then(Suspended::of);
        live.ok_or_else(|| ReconcileError::Conflict { what: what() })
    }

    /// Brings a JobSet that has never run to where it should be.
    async fn renew(&self, live: Suspended, snapshot: Snapshot) -> Result<Placed, ReconcileError> {
        let made = self.render(snapshot).await?;
        if made.renewed {
            self.replace_snapshot(&made.snapshot).await?;
        }
        let objects = &made.rendered.objects;
        let objects = self.apply_beside(objects, Stage::Fresh).await?;
        let wanted = self.marked(made.rendered.job_set);
        let mut job_set = wanted.clone();
        if let Some(metadata) = job_set.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(live.uid));
            metadata.insert("resourceVersion".to_owned(), json!(live.version));
        }
        let params = PatchParams::apply(MANAGER).force();
        let (reconciler, key) = (self.reconciler, self.key);
        let applied = reconciler
            .patch_job_set(key, &Patch::Apply(&job_set), &params)
            .await;
        match applied {
            // A suspended one without pods gives way to another. Its end wakes the TrainJob again.
            Err(ReconcileError::Api { problem, .. })
                if job_set::is_immutable(&problem) && !live.is_active =>
            {
                self.can_be_made(&wanted).await?;
                reconciler
                    .delete_job_set(key, &live.uid, Some(live.version))
                    .await?;
            }
            other => other?,
        }
        Ok(Placed {
            warnings: made.rendered.warnings,
            objects: Some(objects),
        })
    }

    /// Fails where a JobSet could not be created in the place of the one that is there.
    async fn can_be_made(&self, job_set: &Value) -> Result<(), ReconcileError> {
        let failed = |error| {
            let what = format!(
                "creating JobSet `{}` anew, as it can't change",
                self.key.name
            );
            ReconcileError::api(what, error)
        };
        let object = serde_json::from_value(job_set.clone());
        let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let params = PostParams {
            dry_run: true,
            ..creating()
        };
        match self.job_sets().create(&params, &object).await {
            Ok(_) => Ok(()),
            // That is looked at last, when all who may refuse it have agreed.
            Err(kube::Error::Api(status)) if status.reason == reason::ALREADY_EXISTS => Ok(()),
            // It takes the room of the one that goes.
            Err(kube::Error::Api(status)) if is_over_quota(&status) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Lets a JobSet that has run go on, where its pods are to be placed now. While it stays suspended, nothing of it changes. The
    /// objects beside it follow as their modes let, and are known from then on.
    async fn resume(
        &self,
        live: Suspended,
        snapshot: Option<Snapshot>,
    ) -> Result<Placed, ReconcileError> {
        let listed = snapshot.as_ref().map(|snapshot| snapshot.objects.clone());
        let listed = listed.unwrap_or_default();
        let mut warnings = Vec::new();
        let rendered = match snapshot.filter(|snapshot| snapshot.plan.is_some()) {
            None => None,
            Some(snapshot) => match self.render(snapshot).await {
                Ok(made) => Some(made.rendered),
                // Its plugins are gone or not what they were: the TrainJob's own patches still say where its pods go.
                Err(
                    error @ (ReconcileError::PlanIsPinned { .. }
                    | ReconcileError::Render(_)
                    | ReconcileError::Panicked(_)),
                ) => {
                    warnings.push(warning(&error));
                    None
                }
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
            self.let_go(live, rendered.map(|rendered| rendered.job_set))
                .await?;
        }
        Ok(Placed {
            warnings,
            objects: Some(objects),
        })
    }

    /// Lets a JobSet that has run go on, with the scheduling of what was rendered.
    async fn let_go(&self, live: Suspended, rendered: Option<Value>) -> Result<(), ReconcileError> {
        let spec = &live.spec;
        let wanted = match rendered {
            Some(rendered) => rendered.get("spec").cloned().unwrap_or_default(),
            None => patched(&self.job, spec),
        };
        let jobs = job_set::rescheduled(spec, &wanted);
        let patch = job_set::resumption(&live.uid, &live.version, jobs);
        self.reconciler
            .patch_job_set(self.key, &Patch::Merge(&patch), &merging())
            .await
    }

    /// The JobSet as it is applied. One that is let go says so from then on.
    fn marked(&self, job_set: Value) -> Value {
        let mut job_set = self.owned(job_set);
        if !self.job.suspend {
            job_set::mark_started(&mut job_set);
        }
        job_set
    }

    fn job_sets(&self) -> Api<DynamicObject> {
        let (api_version, kind) = (names::JOB_SET_API_VERSION, names::JOB_SET);
        self.reconciler.dynamic(self.key, api_version, kind)
    }

    /// The error, or whose the JobSet of this name is.
    async fn taken(&self, error: ReconcileError) -> Result<(), ReconcileError> {
        let found = self
            .reconciler
            .read::<JobSetObject>(self.key, &self.key.name);
        match found.await {
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

/// Whether a ResourceQuota is used up.
fn is_over_quota(status: &Status) -> bool {
    status.reason == reason::FORBIDDEN && status.message.contains("exceeded quota")
}

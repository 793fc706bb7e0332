//! A TrainJob's JobSet: made, changed while it may change, and let go again.

use std::sync::Arc;

use kube::Resource as _;
use kube::api::{DynamicObject, GetParams, Patch, PatchParams, PostParams};
use kube::core::response::{Status, reason};
use serde_json::{Value, json};
use trainyard_api::names;
use trainyard_render::{About, Warning};

use super::beside::{Held, Stage};
use super::{Pass, Placed};
use crate::annotations::{INPUTS, RECREATED, REMOVED_PLACEMENT, STARTED};
use crate::kubernetes::unless_gone;
use crate::queue::Key;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::inputs;
use crate::reconcile::listed::Listed;
use crate::reconcile::placement::{self, Entries, Index};
use crate::reconcile::snapshot::{Snapshot, is_started};
use crate::reconcile::{MANAGER, Reconciler, creating, job_set, merging, owner};
use crate::watch::{JobSetObject, JobSetState, answer, objects};
use crate::wire;

impl Reconciler {
    pub(super) async fn patch_job_set(
        &self,
        key: &Key,
        patch: &Patch<&Value>,
        params: &PatchParams,
    ) -> Result<(), ReconcileError> {
        let job_sets = objects::<JobSetObject>(&key.namespace);
        let request = job_sets.patch(&key.name, params, patch);
        let bytes = request.as_ref().map_or(0, |request| request.body().len());
        let written = answer::<JobSetObject>(&self.client, request).await;
        let written =
            written.map_err(|error| ReconcileError::writing_job_set(&key.name, bytes, error))?;
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
pub(super) struct Suspended {
    pub(super) uid: String,
    version: String,
    /// Whether it was let go before.
    started: bool,
    /// Whether pods of it run or are about to end.
    pub(super) is_active: bool,
    spec: Value,
    /// What it was rendered from, if it says so.
    inputs: Option<String>,
    /// What its Jobs may still have of an earlier placement.
    taken: Entries,
    /// What of that was taken away in fact: some admission webhook may have put it back. None if there is nothing.
    pub(super) gone: Option<Arc<Index>>,
}

impl Suspended {
    /// That of the text, if it is of that UID; none where it runs, or is about to go.
    fn read(text: &str, uid: &str) -> Option<Self> {
        let mut live: DynamicObject = wire::decode(text).ok()?;
        if live.metadata.uid.as_deref() != Some(uid) {
            return None;
        }
        let spec = live.data.get_mut("spec").map(Value::take)?;
        let is_suspended = spec.get("suspend") == Some(&Value::Bool(true));
        let counts = live.data.pointer("/status/replicatedJobsStatus");
        let mut counts = counts.and_then(Value::as_array).into_iter().flatten();
        let active = |count: &Value| count.get("active").and_then(Value::as_i64);
        let annotations = live.metadata.annotations.as_ref();
        let taken = annotations.and_then(|all| all.get(REMOVED_PLACEMENT));
        let inputs = annotations.and_then(|all| all.get(INPUTS)).cloned();
        // What can't be read says nothing: the Jobs keep what JobSet lets them keep.
        let taken = taken.and_then(|text| Entries::parse(text).ok());
        let taken = taken.unwrap_or_default();
        let gone = taken.clone().missing_in(&spec);
        (is_suspended && live.metadata.deletion_timestamp.is_none()).then_some(Self {
            inputs,
            taken,
            gone: (!gone.is_empty()).then(|| Arc::new(gone.index())),
            started: is_started(&live.metadata),
            is_active: counts.any(|count| active(count) > Some(0)),
            uid: live.metadata.uid?,
            version: live.metadata.resource_version?,
            spec,
        })
    }

    /// What its Jobs may have that the wanted spec does not ask for. JobSet adds the placement of a replicated job to that of its
    /// Jobs when it lets them go, and takes nothing away.
    fn taken_by(&self, wanted: &Value) -> Entries {
        let taken = Entries::missing(&self.spec, wanted);
        let taken = taken.and(self.taken.clone()).missing_in(wanted);
        taken.cut()
    }
}

/// A suspended JobSet, and what it has to change.
struct Moved {
    live: Suspended,
    /// Its replicated jobs, if they are placed otherwise.
    jobs: Option<Value>,
    /// What its Jobs have to lose.
    taken: Entries,
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
        let (key, job_set) = (self.key, self.marked(made.rendered.job_set, &made.snapshot));
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
        applied?;
        self.note_made(made.snapshot, &job_set).await?;
        Ok(Placed {
            warnings: made.rendered.warnings,
            objects: Some(objects),
        })
    }

    /// Brings a suspended JobSet to where it should be.
    pub(super) async fn change(&self, found: &JobSetState) -> Result<Placed, ReconcileError> {
        let mut warnings = Vec::new();
        let mut snapshot = self.snapshot_or_another(found, &mut warnings).await?;
        if let Some(snapshot) = &mut snapshot {
            self.take_recreate_off(snapshot).await?;
        }
        // Of a JobSet older than plans and digests are, nobody knows whether it has run.
        let has_never_run = self.has_never_run(found);
        let is_new =
            |snapshot: &Snapshot| !snapshot.started && (snapshot.plan.is_some() || has_never_run);
        let mut placed = match snapshot {
            Some(snapshot) if is_new(&snapshot) => {
                let live = self.suspended(found).await?;
                if live.started {
                    // Somebody else suspended it, and nobody noted that it ran.
                    warnings.extend(self.says_both(&live));
                    let snapshot = self.started(snapshot).await?;
                    self.resume(found, live, Some(snapshot)).await?
                } else {
                    self.renew(found, live, snapshot).await?
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
                self.resume(found, self.suspended(found).await?, snapshot)
                    .await?
            }
        };
        placed.warnings.append(&mut warnings);
        Ok(placed)
    }

    /// The warning that a JobSet says both that it has run and what it was rendered from, as only one does that has never run.
    fn says_both(&self, live: &Suspended) -> Option<Warning> {
        live.inputs.as_ref().map(|_| Warning {
            about: About::TrainJob,
            field: None,
            message: format!(
                "JobSet `{}`: metadata.annotations: has {STARTED}, which only the controller sets, beside {INPUTS}, so it counts as one that has run, and changes of the TrainJob do not reach it; delete the JobSet, and it is created again",
                self.key.name
            ),
            plugin: None,
        })
    }

    /// The JobSet as the API server has it, if it is still suspended: what is known of it may be old, and what it runs with stays
    /// as it is.
    async fn suspended(&self, found: &JobSetState) -> Result<Suspended, ReconcileError> {
        let what = || format!("JobSet `{}`", self.key.name);
        let job_sets = objects::<JobSetObject>(&self.key.namespace);
        let request = job_sets.get(&self.key.name, &GetParams::default());
        let text = unless_gone(self.reconciler.text(request).await);
        let text =
            text.map_err(|error| ReconcileError::api(format!("reading {}", what()), error))?;
        let uid = found.uid.clone();
        let live = self.on_thread(move |_, _| Suspended::read(&text?, &uid));
        let live = live.await?;
        live.ok_or_else(|| ReconcileError::Conflict { what: what() })
    }

    /// Brings a JobSet that has never run to where it should be.
    async fn renew(
        &self,
        found: &JobSetState,
        mut live: Suspended,
        snapshot: Snapshot,
    ) -> Result<Placed, ReconcileError> {
        let mut made = self.render(snapshot).await?;
        if made.renewed {
            self.write_snapshot(&mut made.snapshot).await?;
        }
        let job_set = self.marked(made.rendered.job_set, &made.snapshot);
        let objects = &made.rendered.objects;
        if live.inputs.is_some() && live.inputs.as_deref() == inputs::annotation(&job_set) {
            let listed: Vec<_> = objects.iter().map(Listed::of).collect();
            return Ok(Placed {
                warnings: made.rendered.warnings,
                objects: Some(Held::by_name(&listed)),
            });
        }
        let objects = self.apply_beside(objects, Stage::Fresh).await?;
        let (taken, wanted);
        (live, taken, wanted) = self.taken_by(live, job_set).await?;
        let mut placed = Placed {
            warnings: made.rendered.warnings,
            objects: Some(objects),
        };
        if !taken.is_empty() {
            let mut waiting = wanted.clone();
            job_set::hold(&mut waiting, &taken);
            if !self.replace(&live, &waiting).await? {
                return Ok(placed);
            }
            live = self.suspended(found).await?;
            placed.warnings.extend(self.jobs_without(&live).await?);
        }
        if self.replace(&live, &wanted).await? {
            self.note_made(made.snapshot, &wanted).await?;
        }
        Ok(placed)
    }

    /// What the Jobs of a suspended JobSet may have that the wanted one does not ask for.
    async fn taken_by(
        &self,
        live: Suspended,
        wanted: Value,
    ) -> Result<(Suspended, Entries, Value), ReconcileError> {
        self.on_thread(move |_, _| {
            let taken = live.taken_by(wanted.get("spec").unwrap_or(&Value::Null));
            (live, taken, wanted)
        })
        .await
    }

    /// Applies a JobSet over the suspended one. Where that is refused because fields can't change, the one that is there gives way to
    /// another, whose absence wakes the TrainJob again. Says whether it is still there.
    async fn replace(&self, live: &Suspended, wanted: &Value) -> Result<bool, ReconcileError> {
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
            Err(ReconcileError::Api { problem, .. })
                if job_set::is_immutable(&problem) && !live.is_active =>
            {
                self.can_be_made(wanted).await?;
                let version = Some(live.version.clone());
                reconciler.delete_job_set(key, &live.uid, version).await?;
                Ok(false)
            }
            other => other.map(|()| true),
        }
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
        let object = serde_json::to_vec(job_set);
        let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let params = PostParams {
            dry_run: true,
            ..creating()
        };
        let job_sets = objects::<JobSetObject>(&self.key.namespace);
        let request = job_sets.create(&params, object);
        match self.reconciler.text(request).await {
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
        found: &JobSetState,
        live: Suspended,
        snapshot: Option<Snapshot>,
    ) -> Result<Placed, ReconcileError> {
        let mut warnings = Vec::new();
        let Some(snapshot) = snapshot else {
            // Nobody knows any more what of the placement is an earlier admission's.
            if !self.job.suspend {
                let wanted = self.placed(None, &live).await?;
                warnings.extend(self.let_go(found, live, wanted).await?);
            }
            return Ok(Placed {
                warnings,
                objects: Some(Arc::default()),
            });
        };
        let listed = &snapshot.objects;
        let rendered = match self.render(snapshot.clone()).await {
            Ok(made) => Some(made.rendered),
            // Its plugins are gone or not what they were: what they did to its pods is noted.
            Err(error) if error.is_of_input() || error.is_of_plugins() => {
                warnings.push(super::warning(&error));
                None
            }
            Err(error) => return Err(error),
        };
        let objects = match &rendered {
            None => Held::by_name(listed),
            Some(rendered) => {
                let objects = rendered.objects.iter();
                let objects = objects.filter(|object| listed.contains(&Listed::of(object)));
                let objects: Vec<_> = objects.collect();
                self.apply_beside(objects, Stage::Suspended).await?
            }
        };
        if !self.job.suspend {
            let spec =
                rendered.and_then(|mut rendered| Some(rendered.job_set.get_mut("spec")?.take()));
            // Without either, what plugins did can't be told from what an earlier admission asked for: all of it stays.
            let wanted = match spec {
                Some(spec) => spec,
                None => self.placed(Some(snapshot), &live).await?,
            };
            warnings.extend(self.let_go(found, live, wanted).await?);
        }
        Ok(Placed {
            warnings,
            objects: Some(objects),
        })
    }

    /// The spec by which pods are placed where no plugin can be asked: by what is noted, or else as they are, and by the TrainJob's own
    /// patches.
    async fn placed(
        &self,
        snapshot: Option<Snapshot>,
        live: &Suspended,
    ) -> Result<Value, ReconcileError> {
        let (job, spec) = (self.job.clone(), live.spec.clone());
        let placed = self.on_thread(move |_, deadline| {
            let noted = snapshot.map(|snapshot| snapshot.placed(&job, deadline));
            match noted.transpose()?.flatten() {
                Some(noted) => Ok(noted),
                None => placement::patched(&job, &spec, deadline),
            }
        });
        placed.await?.map_err(ReconcileError::placing)
    }

    /// Lets a JobSet that has run go on, with its pods placed as in the wanted spec.
    async fn let_go(
        &self,
        found: &JobSetState,
        live: Suspended,
        wanted: Value,
    ) -> Result<Option<Warning>, ReconcileError> {
        let (reconciler, key) = (self.reconciler, self.key);
        let patch = async |patch: Value| {
            let patch = Patch::Merge(&patch);
            reconciler.patch_job_set(key, &patch, &merging()).await
        };
        let wanted = Arc::new(wanted);
        let mut moved = self.moved(live, &wanted).await?;
        let mut warning = None;
        if !moved.taken.is_empty() {
            let Moved { live, jobs, taken } = moved;
            let live = if jobs.is_some() || taken != live.taken {
                patch(job_set::relocation(&live.uid, &live.version, jobs, &taken)).await?;
                self.suspended(found).await?
            } else {
                live
            };
            warning = self.jobs_without(&live).await?;
            moved = self.moved(live, &wanted).await?;
        }
        let Moved { live, jobs, .. } = moved;
        patch(job_set::resumption(&live.uid, &live.version, jobs)).await?;
        Ok(warning)
    }

    /// What a JobSet has to change, so that its pods are placed as in the wanted spec.
    async fn moved(&self, live: Suspended, wanted: &Arc<Value>) -> Result<Moved, ReconcileError> {
        let wanted = wanted.clone();
        let moved = self.on_thread(move |_, deadline| {
            let taken = live.taken_by(&wanted);
            deadline.check()?;
            let jobs = placement::placed(&live.spec, &wanted);
            Ok(Moved { live, jobs, taken })
        });
        moved.await?.map_err(ReconcileError::placing)
    }

    /// The JobSet as it is applied. One that is let go says so from then on; one that waits says what it was rendered from.
    fn marked(&self, job_set: Value, snapshot: &Snapshot) -> Value {
        let mut job_set = self.owned(job_set);
        job_set::clear_marks(&mut job_set);
        if snapshot.recreate {
            job_set::annotate(&mut job_set, RECREATED, "true".to_owned());
        }
        if self.job.suspend {
            let inputs = self.inputs.annotation(&snapshot.lookups);
            job_set::annotate(&mut job_set, INPUTS, inputs);
        } else {
            job_set::mark_started(&mut job_set);
        }
        job_set
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

/// Whether a ResourceQuota is used up.
fn is_over_quota(status: &Status) -> bool {
    status.reason == reason::FORBIDDEN && status.message.contains("exceeded quota")
}

//! What a TrainJob owns: its snapshot, the objects beside the JobSet, and the JobSet.

mod beside;
mod snapshots;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use trainyard_api::{Admitted, Object, Source, TrainJob, merge, names, runtime::RuntimeKind};
use trainyard_model::lookup::Lookups;
use trainyard_render::{Problem, Rendered, Warning};

use super::error::{ReconcileError, code, unless_gone};
use super::snapshot::{Plan, STARTED, Snapshot};
use super::{MANAGER, Reconciler, defaults, job_set, kind_of, merging, owner};
use crate::queue::Key;
use crate::watch::{
    JobSetObject, JobSetState, RuntimeKey, TrainJobObject, TrainJobState, Watched as _,
};

/// A TrainJob that was read, on its way.
struct Pass<'a> {
    reconciler: &'a Reconciler,
    key: &'a Key,
    job: Arc<TrainJob>,
}

/// A TrainJob's JobSet and what stands beside it, with the snapshot that they were made of.
struct Made {
    rendered: Rendered,
    snapshot: Snapshot,
}

impl Reconciler {
    /// Brings the TrainJob's objects to where they should be.
    pub(super) async fn children(
        &self,
        key: &Key,
        state: &TrainJobState,
        suspend: bool,
    ) -> Result<Vec<Warning>, ReconcileError> {
        let job_set = self.stores.job_sets.get(key);
        match job_set.as_deref() {
            Some(found) if found.owner.as_ref() != Some(&state.uid) => {
                Err(self.foreign_job_set(key).await?)
            }
            // Its end wakes the TrainJob again.
            Some(found) if found.deleting => Ok(Vec::new()),
            Some(found) if !found.suspended && suspend => {
                self.suspend(key, found).await?;
                Ok(Vec::new())
            }
            Some(found) if !found.suspended => Ok(Vec::new()),
            found => {
                let now = (state.uid.clone(), state.fingerprint());
                // One that should run is let go, whoever suspended it.
                let is_as_wanted =
                    self.applied().get(key) == Some(&now) && !self.interests.is_outdated(key);
                if found.is_some() && suspend && is_as_wanted {
                    return Ok(Vec::new());
                }
                self.interests.begin(key);
                let pass = Pass {
                    reconciler: self,
                    key,
                    job: Arc::new(read(state.object().unwrap_or_default())?),
                };
                let warnings = match found {
                    Some(found) => pass.change(found).await?,
                    None => {
                        let had_one = !state.status.jobs_status.is_empty();
                        if had_one {
                            self.confirm(key, state).await?;
                        }
                        pass.make().await?
                    }
                };
                self.applied().insert(key.clone(), now);
                Ok(warnings)
            }
        }
    }

    /// Fails where the TrainJob is not what is known of it any more. Of two watches one may be behind: the JobSet of a TrainJob
    /// that was deleted, or has ended, would be made again.
    async fn confirm(&self, key: &Key, known: &TrainJobState) -> Result<(), ReconcileError> {
        let what = format!("TrainJob `{}`", key.name);
        let api: Api<TrainJobObject> = self.api(key);
        let found = api.get_opt(&key.name).await;
        let found = found.map_err(|error| ReconcileError::api(format!("reading {what}"), error))?;
        match found.and_then(TrainJobObject::slim) {
            Some((_, now))
                if now.uid == known.uid && now.resource_version() == known.resource_version() =>
            {
                Ok(())
            }
            Some((key, now)) => {
                self.stores.jobs.put(key, now);
                Err(ReconcileError::Conflict { what })
            }
            None => Err(ReconcileError::Conflict { what }),
        }
    }

    /// Suspends a running JobSet: nothing else of it changes. Before that, its snapshot says that it has run.
    async fn suspend(&self, key: &Key, job_set: &JobSetState) -> Result<(), ReconcileError> {
        let maps: Api<ConfigMap> = self.api(key);
        let started = json!({"metadata": {"annotations": {STARTED: "true"}}, "immutable": true});
        let name = Snapshot::name(&key.name);
        let marked = maps.patch(&name, &merging(), &Patch::Merge(&started)).await;
        // There is none where the JobSet is older than snapshots are, or somebody deleted it.
        unless_gone(marked)
            .map_err(|error| ReconcileError::api(format!("marking ConfigMap `{name}`"), error))?;
        let patch = job_set::suspension(&job_set.uid);
        self.patch_job_set(key, &Patch::Merge(&patch), &merging())
            .await
    }

    async fn patch_job_set(
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
    async fn foreign_job_set(&self, key: &Key) -> Result<ReconcileError, ReconcileError> {
        Ok(match self.live_job_set(key).await? {
            Some(found) => owner::foreign(names::JOB_SET, &key.name, found.meta()),
            None => ReconcileError::Stale {
                kind: names::JOB_SET.to_owned(),
                name: key.name.to_string(),
            },
        })
    }

    async fn live_job_set(&self, key: &Key) -> Result<Option<JobSetObject>, ReconcileError> {
        let found = self.api(key).get_opt(&key.name).await;
        found.map_err(|error| ReconcileError::api(format!("reading JobSet `{}`", key.name), error))
    }
}

impl Pass<'_> {
    /// Makes everything of a TrainJob that has no JobSet.
    async fn make(&self) -> Result<Vec<Warning>, ReconcileError> {
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

    /// A TrainJob that comes now.
    async fn made_now(&self) -> Result<Made, ReconcileError> {
        let (made, _) = self.render(self.fresh_snapshot()?).await?;
        Ok(made)
    }

    /// The same from the snapshot that is already there; the error where there is none.
    async fn remade(&self, error: ReconcileError) -> Result<Made, ReconcileError> {
        let Some(snapshot) = self.read_snapshot().await? else {
            return Err(error);
        };
        let before = snapshot.plan.clone();
        let started = snapshot.started;
        let (made, same) = self.render(snapshot).await?;
        if same {
            return Ok(made);
        }
        if started {
            return Err(pinned(before.as_ref(), made.snapshot.plan.as_ref()));
        }
        self.replace_snapshot(&made.snapshot).await?;
        Ok(made)
    }

    /// Brings a suspended JobSet to where it should be.
    async fn change(&self, found: &JobSetState) -> Result<Vec<Warning>, ReconcileError> {
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

    /// A snapshot of the runtime as it is now.
    fn fresh_snapshot(&self) -> Result<Snapshot, ReconcileError> {
        let reference = &self.job.runtime_ref;
        let stores = &self.reconciler.stores;
        let (runtimes, namespace) = match reference.kind {
            RuntimeKind::Cluster => (&stores.cluster_runtimes, None),
            RuntimeKind::Namespaced => (&stores.runtimes, Some(self.key.namespace.clone())),
        };
        let runtime = RuntimeKey {
            namespace,
            name: reference.name.as_str().into(),
        };
        let found = runtimes.get(&runtime);
        let (kind, name) = (reference.kind.to_string(), reference.name.clone());
        let error = match found.map(|runtime| runtime.snapshot()) {
            Some(Ok(snapshot)) => return Ok(snapshot),
            None => ReconcileError::NoRuntime { kind, name },
            Some(Err(problem)) => ReconcileError::Runtime {
                kind,
                name,
                problem,
            },
        };
        self.reconciler.interests.waits_for(self.key, &runtime);
        Err(error)
    }

    /// Renders the TrainJob on the snapshot's runtime. Says whether it went the way that the snapshot holds.
    ///
    /// What a started TrainJob's plugins looked up is pinned; for any other it is asked for anew.
    async fn render(&self, mut snapshot: Snapshot) -> Result<(Made, bool), ReconcileError> {
        let mut lookups = if snapshot.started {
            snapshot.lookups.clone()
        } else {
            Arc::new(Lookups::default())
        };
        let plugins = &self.reconciler.plugins;
        let mut rendered = loop {
            let namespace = self.key.namespace.clone();
            let runtime = snapshot.runtime.clone();
            let rendered = plugins.render(self.job.clone(), runtime, namespace, lookups.clone());
            match rendered.await {
                None => return Err(ReconcileError::Abandoned),
                Some(Ok(rendered)) => break rendered,
                Some(Err(problems)) => self.look_up(problems, &mut lookups).await?,
            }
        };
        let facts = plugins.renderer.facts();
        let same = snapshot.renew(Plan::of(&rendered), lookups, facts);
        if self.reconciler.write_defaults {
            defaults::fill(&mut rendered.job_set);
        }
        Ok((Made { rendered, snapshot }, same))
    }

    /// Looks up what plugins ask for. Where they ask for nothing, the problems are the TrainJob's.
    async fn look_up(
        &self,
        problems: Vec<Problem>,
        lookups: &mut Arc<Lookups>,
    ) -> Result<(), ReconcileError> {
        let asked: Vec<_> = problems
            .iter()
            .filter_map(Problem::missing)
            .cloned()
            .collect();
        if asked.is_empty() {
            let plugins = &self.reconciler.plugins;
            let is_missing = problems
                .iter()
                .any(|problem| matches!(problem, Problem::NotLoaded { .. }));
            let refused = if is_missing {
                plugins.refused.to_vec()
            } else {
                Vec::new()
            };
            return Err(ReconcileError::Render { problems, refused });
        }
        for key in asked {
            let reconciler = self.reconciler;
            reconciler.interests.asks(self.key, &key);
            let fetched = reconciler.lookups.fetch(&self.key.namespace, &key).await?;
            reconciler.interests.found(self.key, &key, fetched.seen);
            let Some(answer) = fetched.answer else {
                let mut problems = problems.into_iter();
                let problem = problems.find(|problem| problem.missing() == Some(&key));
                return Err(problem.map_or(ReconcileError::Abandoned, |problem| {
                    ReconcileError::NoObject(Box::new(problem))
                }));
            };
            Arc::make_mut(lookups).insert(key, answer);
        }
        Ok(())
    }

    /// The object with its owner.
    fn owned(&self, mut object: Value) -> Value {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert(
                "ownerReferences".to_owned(),
                json!([owner::reference(&self.job)]),
            );
        }
        object
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

/// Reads a TrainJob with its old forms, as the API server has it.
pub(super) fn read(object: Value) -> Result<TrainJob, ReconcileError> {
    let refused = |errors: Vec<String>| ReconcileError::TrainJob(errors);
    let object = Object::read(Source::new("", 1), object).map_err(|errors| {
        refused(
            errors
                .0
                .iter()
                .map(|error| error.problem.to_string())
                .collect(),
        )
    })?;
    let mut admitted = Admitted::new(object, "");
    let read = TrainJob::read(&admitted.object);
    if let Err(errors) = &read {
        admitted.refuse(&errors.0);
    }
    let line = |error: &trainyard_api::Located| format!("{}: {}", error.place.field, error.message);
    match read {
        Ok(job) if admitted.errors.is_empty() => Ok(job),
        _ => Err(refused(admitted.errors.iter().map(line).collect())),
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

fn pinned(before: Option<&Plan>, now: Option<&Plan>) -> ReconcileError {
    let text = |plan: Option<&Plan>| match plan {
        Some(plan) if plan.plugins.is_empty() => "none".to_owned(),
        Some(plan) => {
            let plugins = plan.plugins.iter();
            let names = plugins
                .map(|plugin| format!("{} {} ({})", plugin.name, plugin.version, plugin.digest));
            names.collect::<Vec<_>>().join(", ")
        }
        None => "an unknown plan".to_owned(),
    };
    ReconcileError::PlanIsPinned {
        pinned: text(before),
        loaded: text(now),
    }
}

/// Whether the API server, or JobSet's webhook, says that the object can't change in this way.
fn is_refused(error: &kube::Error) -> bool {
    matches!(code(error), Some(400 | 403 | 422))
}

/// A kind that plugins may emit, or JobSet; its name in addresses is made as Kubernetes' own kinds make theirs.
fn resource(api_version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&kind_of(api_version, kind))
}

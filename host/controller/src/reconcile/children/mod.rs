//! What a TrainJob owns: its snapshot, the objects beside the JobSet, and the JobSet.

mod beside;
mod job_sets;
mod jobs;
mod read;
mod render;
mod running;
mod snapshots;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GetParams, Patch};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};
use trainyard_api::TrainJob;
use trainyard_model::deadline::Deadline;
use trainyard_model::object::ObjectKind;
use trainyard_render::{About, Renderer, Warning};

use beside::Held;

use super::error::ReconcileError;
use super::inputs::Inputs;
use super::{Reconciler, job_set, merging, owner, status};
use crate::kubernetes::kind_of;
use crate::kubernetes::unless_gone;
use crate::queue::Key;
use crate::watch::{
    JobSetObject, JobSetState, State, TrainJobObject, TrainJobState, answer, objects,
};
use crate::workers::Worker;

pub(super) use read::read;
pub(super) use running::Known;

/// A TrainJob that was read, on its way.
struct Pass<'a> {
    reconciler: &'a Reconciler,
    key: &'a Key,
    worker: &'a Worker,
    job: Arc<TrainJob>,
    /// Whether its status says that a JobSet of it has run.
    has_run: bool,
    /// Whether its status says that it is suspended: so its JobSet has not ended.
    is_suspended: bool,
    /// Whether its JobSet was seen to be deleted before it ended.
    was_deleted: bool,
    /// What it is rendered from.
    inputs: Inputs,
    /// Its room in memory, if it is large.
    _room: Option<OwnedSemaphorePermit>,
    /// The same of its runtime, once that is known.
    runtime_room: OnceCell<Option<OwnedSemaphorePermit>>,
}

/// What was done for a TrainJob.
struct Placed {
    /// What its author should know.
    warnings: Vec<Warning>,
    /// What stands beside its JobSet now; none where that is not known.
    objects: Option<Arc<[Held]>>,
}

impl Reconciler {
    /// Brings the TrainJob's objects to where they should be.
    pub(super) async fn children(
        &self,
        key: &Key,
        state: &Arc<TrainJobState>,
        worker: &Worker,
    ) -> Result<Vec<Warning>, ReconcileError> {
        let suspend = state.wishes.suspend;
        let job_set = self.stores.job_sets.get(key);
        // Asked after it was looked up, so that one that can't be decoded since is not taken for a missing one.
        self.readable_job_set(key)?;
        match job_set.as_deref() {
            Some(found) if found.owner.as_ref() != Some(&state.uid) => {
                Err(self.foreign_job_set(key).await?)
            }
            // Its end wakes the TrainJob again.
            Some(found) if found.deleting => Ok(Vec::new()),
            Some(found) if !found.suspended && suspend => self.suspend(key, state, found).await,
            Some(found) if !found.suspended => {
                self.keep_beside(key, state, found, worker).await?;
                Ok(Vec::new())
            }
            found => {
                let fingerprint = state.fingerprint();
                // One that should run is let go, whoever suspended it.
                if let Some(found) = found
                    && suspend
                    && self.is_as_wanted(key, state, found)
                {
                    return Ok(Vec::new());
                }
                self.interests.begin(key);
                // Should this pass fail, the next one has to make it anew, whatever the last one knew.
                self.known().remove(key);
                let last = self.departed.last(key);
                let pass = self.pass(key, state, worker).await?;
                let placed = match found {
                    Some(found) => pass.change(found).await?,
                    None => {
                        let had_one = !state.status.jobs_status.is_empty();
                        if had_one {
                            self.confirm(key, state).await?;
                        }
                        match pass.make().await {
                            Err(error @ ReconcileError::EndIsUnknown { .. }) => {
                                self.end_unseen(key, state).await?;
                                return Ok(vec![warning(&error)]);
                            }
                            made => made?,
                        }
                    }
                };
                if let (None, Some(last)) = (found, &last) {
                    self.departed.replaced(key, last);
                }
                self.remember(key, &state.uid, fingerprint, placed.objects);
                Ok(placed.warnings)
            }
        }
    }

    /// Whether a suspended JobSet is as its TrainJob wants it: so it was left, or it says so itself.
    fn is_as_wanted(&self, key: &Key, state: &TrainJobState, found: &JobSetState) -> bool {
        if self.interests.is_outdated(key) {
            return false;
        }
        let fingerprint = state.fingerprint();
        let known = self.known().get(key).cloned();
        if let Some(known) = known {
            return known.is_of(&state.uid, fingerprint);
        }
        if found.recreated {
            // Its snapshot may not say so yet.
            return false;
        }
        let inputs = Inputs::of(&self.common, state);
        let is_as_wanted = inputs.are_all_of(found.inputs.as_deref());
        if is_as_wanted {
            self.remember(key, &state.uid, fingerprint, None);
        }
        is_as_wanted
    }

    /// Ends a TrainJob whose JobSet has run and is gone, without anybody having seen how it ended: it would run again.
    async fn end_unseen(&self, key: &Key, state: &TrainJobState) -> Result<(), ReconcileError> {
        // Of two watches one may be behind.
        self.confirm(key, state).await?;
        let found: Option<JobSetObject> = self.read(key, &key.name).await?;
        if found.is_some() {
            let what = format!("JobSet `{}`", key.name);
            return Err(ReconcileError::Conflict { what });
        }
        let status = &state.status;
        let end = status::unseen_end(status, Timestamp::now());
        let departed = JobSetState::departed(state.uid.clone(), end, &status.jobs_status);
        self.departed.note(key, Arc::new(departed), true);
        Ok(())
    }

    /// Suspends the JobSet of a TrainJob that is about to be deleted, if it is to be suspended. Nothing else is made of such a TrainJob.
    pub(super) async fn suspend_what_runs(
        &self,
        key: &Key,
        state: &TrainJobState,
    ) -> Result<Vec<Warning>, ReconcileError> {
        match self.job_set(key, state) {
            Some(found) if state.wishes.suspend && !found.suspended && !found.deleting => {
                self.suspend(key, state, &found).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Reads the TrainJob.
    async fn pass<'a>(
        &'a self,
        key: &'a Key,
        state: &Arc<TrainJobState>,
        worker: &'a Worker,
    ) -> Result<Pass<'a>, ReconcileError> {
        let room = self.room.of(state.text().len(), worker).await;
        let text = state.clone();
        let read = move |_: &Renderer, _: &Deadline| read(&text);
        let job = self.plugins.run(worker, &key.namespace, read).await??;
        Ok(Pass {
            reconciler: self,
            key,
            worker,
            job: Arc::new(job),
            has_run: status::has_run(&state.status),
            is_suspended: state.status.is_true(status::SUSPENDED).is_some(),
            was_deleted: self.departed.was_deleted(key, &state.uid),
            inputs: Inputs::of(&self.common, state),
            _room: room,
            runtime_room: OnceCell::new(),
        })
    }

    /// Fails where the TrainJob is not what is known of it any more. Of two watches one may be behind: the JobSet of a TrainJob
    /// that was deleted, or has ended, would be made again.
    async fn confirm(&self, key: &Key, known: &TrainJobState) -> Result<(), ReconcileError> {
        let what = format!("TrainJob `{}`", key.name);
        let request =
            objects::<TrainJobObject>(&key.namespace).get(&key.name, &GetParams::default());
        let found = unless_gone(answer::<TrainJobObject>(&self.client, request).await);
        let found = found.map_err(|error| ReconcileError::api(format!("reading {what}"), error))?;
        match found.flatten() {
            Some((_, Ok(now)))
                if now.uid == known.uid && now.resource_version() == known.resource_version() =>
            {
                Ok(())
            }
            Some((key, now)) => {
                self.stores.jobs.put_read(key, now);
                Err(ReconcileError::Conflict { what })
            }
            None => {
                self.stores.jobs.remove(key, State::version(known));
                Err(ReconcileError::Conflict { what })
            }
        }
    }

    /// Suspends a running JobSet: nothing else of it changes. Before that, its snapshot says that it has run.
    async fn suspend(
        &self,
        key: &Key,
        state: &TrainJobState,
        job_set: &JobSetState,
    ) -> Result<Vec<Warning>, ReconcileError> {
        let unmarked = match self.mark_started(key, &state.uid).await {
            Ok(foreign) => foreign,
            // Whoever refuses the mark keeps nobody from suspending: a JobSet of ours says itself that it has run.
            Err(error) if error.is_refusal() => Some(error),
            Err(error) => return Err(error),
        };
        let patch = job_set::suspension(&job_set.uid);
        let patch = Patch::Merge(&patch);
        self.patch_job_set(key, &patch, &merging()).await?;
        Ok(unmarked.iter().map(warning).collect())
    }

    /// The objects of a kind that plugins emit: a checked one, as it becomes a part of addresses.
    fn beside(&self, key: &Key, kind: &ObjectKind) -> Api<DynamicObject> {
        self.dynamic(key, kind_of(kind.api_version(), kind.kind()))
    }

    /// The objects of a kind; its name in addresses is made as Kubernetes' own kinds make theirs.
    fn dynamic(&self, key: &Key, kind: GroupVersionKind) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
    }
}

/// What the author of a TrainJob that goes on all the same should know.
fn warning(error: &ReconcileError) -> Warning {
    Warning {
        about: About::TrainJob,
        field: None,
        message: error.to_string(),
        plugin: None,
    }
}

impl Pass<'_> {
    /// Waits until there is room in memory for a runtime of so many values. Once for the pass: a pass that has room never waits for
    /// more of it.
    async fn make_room(&self, values: usize) {
        let room = &self.reconciler.runtime_room;
        if room.is_for(values) {
            let room = || room.of(values, self.worker);
            self.runtime_room.get_or_init(room).await;
        }
    }

    /// Does something on a thread that may be blocked: reading, rendering and writing may take long.
    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        let plugins = &self.reconciler.plugins;
        Ok(plugins.run(self.worker, &self.key.namespace, work).await?)
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
}

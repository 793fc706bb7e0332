//! One pass over one TrainJob: what it should be, and the writes that bring it there, in an order that is safe wherever it
//! stops.
//!
//! Snapshot first, then the objects beside the JobSet, then the JobSet, then the status. A JobSet that has started is frozen:
//! of it only `spec.suspend` changes, and, when it goes on after a suspension, how its pods are placed. What stands beside it
//! is frozen with it, but for live objects; what is missing there is made again from the plan that it was made by.

mod children;
mod defaults;
mod departed;
mod error;
mod inputs;
mod job_set;
mod listed;
mod live;
mod lookups;
mod owner;
mod placement;
mod snapshot;
mod status;
mod tell;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, GetParams, PatchParams, PostParams, Preconditions};
use kube::core::{NamespaceResourceScope, Request};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use trainyard_api::names;
use trainyard_render::Warning;

pub use error::ReconcileError;
pub use listed::Listed;
pub use live::{Live, LiveError, live};
pub use snapshot::{Snapshot, SnapshotError};

use crate::kubernetes::unless_gone;
use crate::plugins::Plugins;
use crate::queue::Key;
use crate::rbac::{Emitted, Reach};
use crate::watch::{
    Gone, Interests, JobSetObject, JobSetState, Kinds, Lists, RuntimeKey, RuntimeState, Store,
    TrainJobState, Unreadable, decoded,
};
use crate::workers::{Room, Worker};

/// The field manager of everything that is written.
const MANAGER: &str = "trainer";

/// What the controller knows of the cluster.
#[derive(Debug, Default)]
pub struct Stores {
    /// TrainJobs.
    pub jobs: Store<Key, TrainJobState>,
    /// JobSets.
    pub job_sets: Store<Key, JobSetState>,
    /// Runtimes of namespaces.
    pub runtimes: Store<RuntimeKey, RuntimeState>,
    /// Runtimes of the cluster.
    pub cluster_runtimes: Store<RuntimeKey, RuntimeState>,
}

impl Stores {
    /// Waits until every store is whole.
    pub(crate) async fn synced(&self) {
        self.jobs.synced().await;
        self.job_sets.synced().await;
        self.runtimes.synced().await;
        self.cluster_runtimes.synced().await;
    }
}

/// Brings TrainJobs to where they should be.
pub struct Reconciler {
    client: Client,
    stores: Arc<Stores>,
    plugins: Plugins,
    lookups: lookups::Fetcher,
    pub(crate) kinds: Arc<Kinds>,
    /// The lists that plugins look up.
    pub(crate) lists: Arc<Lists>,
    /// What the TrainJobs that have not started were made of, or wait for.
    pub(crate) interests: Arc<Interests>,
    write_defaults: bool,
    /// The kinds of objects that the plugins may emit.
    emitted: Emitted,
    /// What all TrainJobs are rendered from.
    common: inputs::Common,
    /// The room in memory for large TrainJobs, and for those of large runtimes.
    room: Room,
    runtime_room: Room,
    /// What was seen of each TrainJob's JobSet and what stands beside it, when it was as its TrainJob wants it.
    known: Mutex<HashMap<Key, children::Known>>,
    /// JobSets that are gone. One that ended would be made again, and run again, where its TrainJob does not say so yet.
    departed: departed::Departed,
}

/// What a reconcile leaves.
#[derive(Debug)]
pub struct Reconciled {
    /// After how long the TrainJob has to be looked at again, where time alone changes it.
    pub again: Option<Duration>,
    /// What its author should know of what was made just now, whatever failed after it.
    pub warnings: Vec<Warning>,
    /// What kept it from where it should be.
    pub result: Result<(), ReconcileError>,
}

impl Reconciler {
    /// A reconciler that writes with this client. With `write_defaults`, JobSets carry the defaults that JobSet's own webhooks
    /// would set, for clusters that run without them.
    pub fn new(
        client: Client,
        stores: Arc<Stores>,
        plugins: Plugins,
        write_defaults: bool,
    ) -> Self {
        let kinds = Arc::new(Kinds::new(client.clone()));
        let lists = Arc::new(Lists::default());
        let loaded = plugins.renderer.generation().plugins();
        let claims: Vec<_> = loaded.map(|plugin| &plugin.manifest.claims).collect();
        let (reach, emitted) = (Reach::of(claims.clone()), Emitted::of(claims));
        Self {
            lookups: lookups::Fetcher::new(client.clone(), kinds.clone(), lists.clone()),
            kinds,
            lists,
            interests: Arc::new(Interests::new(reach)),
            emitted,
            common: inputs::Common::new(&plugins, write_defaults),
            room: Room::of_texts(),
            runtime_room: Room::of_runtimes(),
            client,
            stores,
            plugins,
            write_defaults,
            known: Mutex::default(),
            departed: departed::Departed::default(),
        }
    }

    /// Renders nothing any more, as the process ends. What was rendered is still written.
    pub(crate) fn end(&self) {
        self.plugins.threads.end();
    }

    /// Keeps what is known of a JobSet that is gone, until its TrainJob says its end.
    pub(crate) fn departed(&self, key: &Key, gone: Gone<JobSetState>) {
        let jobs = &self.stores.jobs;
        let is_told = match jobs.get(key) {
            Some(job) => status::end(&job.status).is_some(),
            // It may come with the first list, or in another version that can be read.
            None => jobs.is_synced() && jobs.unreadable(key).is_none(),
        };
        if !is_told {
            self.departed.note(key, gone.last, gone.was_seen);
        }
    }

    /// Forgets how a JobSet went once its TrainJob says it, or is gone. A controller that waits to lead reconciles nothing, and
    /// would keep all of them.
    pub(crate) fn job_changed(&self, key: &Key) {
        let Stores { jobs, .. } = &*self.stores;
        let waits = |job: Arc<TrainJobState>| status::end(&job.status).is_none();
        let is_needed = || jobs.get(key).is_some_and(waits) || jobs.unreadable(key).is_some();
        if !is_needed() {
            self.departed.forget(key);
        }
    }

    /// Brings a TrainJob to where it should be. Whatever keeps it from there, its status is written.
    pub(crate) async fn reconcile(&self, key: &Key, worker: &Worker) -> Reconciled {
        let nothing = Reconciled {
            again: None,
            warnings: Vec::new(),
            result: Ok(()),
        };
        if let Some(job) = self.stores.jobs.unreadable(key) {
            // What is known of an older version must not be acted on.
            self.known().remove(key);
            return unreadable(names::TRAIN_JOB, key, &job).into();
        }
        let Some(state) = self.stores.jobs.get(key) else {
            self.known().remove(key);
            self.departed.forget(key);
            self.interests.forget(key);
            return nothing;
        };
        if !state.wishes.managed_by_us {
            self.interests.forget(key);
            return nothing;
        }
        if let Err(error) = self.readable_job_set(key) {
            return error.into();
        }
        let now = Timestamp::now();
        let (warnings, result) = self.pass_over(key, &state, worker, now).await;
        let again = self.deadline(key, &state, now);
        Reconciled {
            again,
            warnings,
            result,
        }
    }

    /// Fails if there is a JobSet of the TrainJob's name and it can't be decoded: it would look like one that is missing.
    fn readable_job_set(&self, key: &Key) -> Result<(), ReconcileError> {
        match self.stores.job_sets.unreadable(key) {
            None => Ok(()),
            Some(job_set) => Err(unreadable(names::JOB_SET, key, &job_set)),
        }
    }

    async fn pass_over(
        &self,
        key: &Key,
        state: &Arc<TrainJobState>,
        worker: &Worker,
        now: Timestamp,
    ) -> (Vec<Warning>, Result<(), ReconcileError>) {
        let wishes = &state.wishes;
        let status = self.status(key, state, now);
        let has_ended = status::end(&status).is_some() || wishes.not_supported.is_some();
        let made = if has_ended {
            self.known().remove(key);
            Ok(Vec::new())
        } else if state.deleting {
            // Somebody's finalizer may keep it for long, and its JobSet with it.
            self.suspend_what_runs(key, state).await
        } else {
            self.children(key, state, worker).await
        };
        let has_started = |job_set: Arc<JobSetState>| !job_set.suspended;
        if has_ended || state.deleting || self.job_set(key, state).is_some_and(has_started) {
            self.interests.forget(key);
        } else {
            self.interests.settle(key);
        }
        let suspend = if made.is_err() && self.has_lost_its_job_set(key, state) {
            // Whether its JobSet was suspended when it went tells whether it may have ended: the next pass has to know that, too.
            state.status.is_true(status::SUSPENDED).is_some()
        } else {
            // One that could not be suspended, or is about to go, keeps its pods.
            wishes.suspend && !self.may_run(key, state)
        };
        let told = self.tell(key, state, suspend, now).await;
        match made {
            Ok(warnings) => (warnings, told),
            Err(error) => (Vec::new(), told.and(Err(error))),
        }
    }

    /// The JobSet of a TrainJob, if it is its own.
    fn job_set(&self, key: &Key, job: &TrainJobState) -> Option<Arc<JobSetState>> {
        let job_set = self.stores.job_sets.get(key)?;
        (job_set.owner.as_ref() == Some(&job.uid)).then_some(job_set)
    }

    /// Whether pods of its JobSet may run.
    fn may_run(&self, key: &Key, state: &TrainJobState) -> bool {
        let job_set = self.job_set(key, state);
        job_set.is_some_and(|job_set| !job_set.suspended && job_set.end.is_none())
    }

    /// Whether the TrainJob had a JobSet, which may have run, and has none now.
    fn has_lost_its_job_set(&self, key: &Key, state: &TrainJobState) -> bool {
        !state.status.jobs_status.is_empty() && self.job_set(key, state).is_none()
    }

    /// Deletes the JobSet of that UID, and nothing else of its name.
    async fn delete_job_set(
        &self,
        key: &Key,
        uid: &str,
        version: Option<String>,
    ) -> Result<(), ReconcileError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: version,
            }),
            ..DeleteParams::background()
        };
        let api: Api<JobSetObject> = self.api(key);
        let deleted = unless_gone(api.delete(&key.name, &params).await);
        let failed = |error| ReconcileError::api(format!("deleting JobSet `{}`", key.name), error);
        deleted.map(drop).map_err(failed)
    }

    /// The objects of a kind in the TrainJob's namespace.
    fn api<K>(&self, key: &Key) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// The object of that name in the TrainJob's namespace; none where there is none.
    async fn read<K>(&self, key: &Key, name: &str) -> Result<Option<K>, ReconcileError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + DeserializeOwned
            + Send
            + 'static,
    {
        let what = || format!("reading {} `{name}`", K::kind(&()));
        let failed = |error| ReconcileError::api(what(), error);
        let objects = Request::new(K::url_path(&(), Some(&key.namespace)));
        let request = objects.get(name, &GetParams::default());
        let Some(text) = unless_gone(self.text(request).await).map_err(failed)? else {
            return Ok(None);
        };
        let read = decoded(text, |text| serde_json::from_str(text)).await;
        let read = read.map_err(|_| ReconcileError::Abandoned)?;
        read.map(Some)
            .map_err(|error| failed(kube::Error::SerdeError(error)))
    }

    /// The text of an answer.
    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await
    }

    #[cfg(test)]
    pub(crate) fn count_ends(&self) -> usize {
        self.departed.len()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, children::Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<ReconcileError> for Reconciled {
    fn from(error: ReconcileError) -> Self {
        Self {
            again: None,
            warnings: Vec::new(),
            result: Err(error),
        }
    }
}

fn unreadable(kind: &'static str, key: &Key, object: &Unreadable) -> ReconcileError {
    ReconcileError::Unreadable {
        kind,
        name: key.name.to_string(),
        why: object.why.to_string(),
    }
}

/// How objects are patched.
fn merging() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// How objects are created.
fn creating() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

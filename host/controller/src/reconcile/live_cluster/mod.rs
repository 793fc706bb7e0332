//! The cluster of a reconcile in the controller: the API server, the stores, and the threads on which TrainJobs are read and rendered. Each
//! file has the calls about one kind of object.

mod config_maps;
mod creation;
mod job_sets;
mod jobs;
mod lookups;
mod memory;
mod not_served;
mod objects;
mod placements;
pub(super) mod rendering;
mod runtimes;
pub(super) mod train_jobs;

use std::{collections::HashMap, sync::Arc};

use k8s_openapi::{api::core::v1::ConfigMap, jiff::Timestamp};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, GetParams, ListParams, PatchParams, PostParams},
    core::{GroupVersionKind, NamespaceResourceScope, Request},
};
use placements::PlacementChanges;
use rendering::RenderedJobSet;
use serde::de::DeserializeOwned;
use train_jobs::AdmittedTrainJob;
use trainyard_model::{
    deadline::Deadline,
    lookup::{LookupAnswer, LookupKey},
    object::ObjectKind,
    record::Accelerators,
};
use trainyard_render::Renderer;

use super::{
    Reconciler,
    cluster::{Cluster, Values},
    error::ReconcileError,
    job_set::SuspendedJobSet,
    snapshot::Snapshot,
    start::KnownJobSet,
    vouch::Voucher,
};
use crate::{
    fair::{Permit, Worker},
    generation::{Generation, Pinned},
    kubernetes::{kind_of, unless_gone},
    queue::NamespacedName,
    watch::{Feed, FeedError, JobSetState, TrainJobState, decoded},
};

/// The field manager of everything that is written.
pub const MANAGER: &str = "trainer";

/// The cluster of one reconcile of one TrainJob.
pub(super) struct LiveCluster<'a> {
    reconciler: &'a Reconciler,
    key: &'a NamespacedName,
    worker: &'a Worker,
    /// The plugins that it is rendered with.
    pinned: Pinned,
    /// When the reconcile began.
    now: Timestamp,
    /// The TrainJob as it was in the store at that time.
    job: Arc<TrainJobState>,
    /// What vouches for its snapshot.
    voucher: Voucher,
    /// The last state of a deleted JobSet, if there was no other JobSet.
    deleted_job_set: Option<Arc<JobSetState>>,
    /// The number of values of a runtime for which memory is reserved, with the reservation.
    runtime_memory: Option<(usize, Option<Permit>)>,
    /// The answers to lookups that renderings of this and of other generations share; `None` if each rendering makes its own lookups.
    pub(super) answers: Option<Answers>,
}

/// The answers to lookups; `None` for an object that does not exist.
pub(super) type Answers = HashMap<LookupKey, Option<LookupAnswer>>;

impl Cluster for LiveCluster<'_> {}

impl Values for LiveCluster<'_> {
    type TrainJob = AdmittedTrainJob;
    type Snapshot = Snapshot;
    type Rendering = RenderedJobSet;
    type JobSet = Arc<SuspendedJobSet>;
    type Placement = PlacementChanges;
}

impl<'a> LiveCluster<'a> {
    /// Returns the cluster of a reconcile. `job` and `job_set` are from the stores, and `now` is when it began.
    pub(super) fn new(
        reconciler: &'a Reconciler,
        (key, worker): (&'a NamespacedName, &'a Worker),
        pinned: Pinned,
        job: Arc<TrainJobState>,
        job_set: &KnownJobSet,
        now: Timestamp,
    ) -> Self {
        let deleted = reconciler.deleted_job_sets.last(key);
        Self {
            reconciler,
            key,
            worker,
            pinned,
            now,
            job,
            voucher: Voucher::of(job_set),
            deleted_job_set: deleted.filter(|_| !job_set.exists()),
            runtime_memory: None,
            answers: None,
        }
    }

    /// Returns the resources that count as accelerators.
    pub(super) fn accelerators(&self) -> &Accelerators {
        &self.pinned.generation().renderer().facts().accelerators
    }

    /// Returns the API of a kind in the TrainJob's namespace.
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.reconciler.client.clone(), &self.key.namespace)
    }

    /// Returns the API of ConfigMaps in the TrainJob's namespace.
    fn config_maps(&self) -> Api<ConfigMap> {
        self.api()
    }

    /// Returns the API of a kind that plugins emit. The kind is checked, because it becomes part of a URL.
    fn emitted(&self, kind: &ObjectKind) -> Api<DynamicObject> {
        self.dynamic(&kind_of(kind.api_version(), kind.kind()))
    }

    /// Returns the API of a kind by its `apiVersion`.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        self.dynamic(&kind_of(api_version, kind))
    }

    /// Returns the API of a kind. Its resource name is derived by the rule of Kubernetes' own kinds.
    fn dynamic(&self, kind: &GroupVersionKind) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(kind);
        let client = self.reconciler.client.clone();
        Api::namespaced_with(client, &self.key.namespace, &resource)
    }

    /// Reads the object of that name in the TrainJob's namespace; `None` if it does not exist.
    async fn read<K>(&self, name: &str) -> Result<Option<K>, ReconcileError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + DeserializeOwned
            + Send
            + 'static,
    {
        let what = || format!("reading {} `{name}`", K::kind(&()));
        let failed = |error| ReconcileError::api(what(), error);
        let objects = Request::new(K::url_path(&(), Some(&self.key.namespace)));
        let request = objects.get(name, &GetParams::default());
        let Some(text) = unless_gone(self.text(request).await).map_err(failed)? else {
            return Ok(None);
        };
        let read = decoded(text, |text| serde_json::from_str(text)).await;
        let read = read.map_err(|_| ReconcileError::Abandoned)?;
        read.map(Some)
            .map_err(|error| failed(kube::Error::SerdeError(error)))
    }

    /// Returns the text of the answer to a request.
    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.reconciler.client.request_text(request).await
    }

    /// Lists objects of the JobSet, and returns what `read` keeps of each; `size` is its memory. The worker has to be free, because a namespace
    /// can make this slow.
    async fn list<T: Send + 'static>(
        &self,
        kind: &GroupVersionKind,
        params: ListParams,
        read: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
        size: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>, ReconcileError> {
        let path = DynamicObject::url_path(&ApiResource::from_gvk(kind), Some(&self.key.namespace));
        let feed = Feed::new(self.reconciler.client.clone(), path, params, read);
        let found = feed.all(size).await.map_err(FeedError::into_call);
        let what = || format!("listing the {}s of JobSet `{}`", kind.kind, self.key.name);
        found.map_err(|error| ReconcileError::api(what(), error))
    }

    /// Runs a task on a blocking thread, such as parsing, rendering or comparing. Other reconciles can use the worker in the meantime.
    pub(super) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        self.on_thread_with(self.pinned.generation(), work).await
    }

    /// The same, with the plugins of a generation.
    async fn on_thread_with<T: Send + 'static>(
        &self,
        generation: &Arc<Generation>,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        let generation = generation.clone();
        let work = move |deadline: &Deadline| work(generation.renderer(), deadline);
        let done = self.reconciler.threads.run(&self.key.namespace, work);
        Ok(self.worker.free_while(done).await?)
    }
}

/// Returns the parameters of patches.
pub(crate) fn merging() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Returns the parameters of creations.
pub(crate) fn creating() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

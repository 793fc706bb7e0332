//! The context of observations and actions: the API server, and the threads on which TrainJobs are read and rendered.

use std::sync::Arc;

use k8s_openapi::{api::core::v1::ConfigMap, jiff::Timestamp};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, GetParams, PatchParams, PostParams},
    core::{GroupVersionKind, NamespaceResourceScope, Request},
};
use serde::de::DeserializeOwned;
use trainyard_model::{deadline::Deadline, object::ObjectKind};
use trainyard_render::Renderer;

use super::{Reconciler, error::ReconcileError, vouch::Voucher};
use crate::{
    fair::Worker,
    kubernetes::{kind_of, unless_gone},
    queue::NamespacedName,
    watch::{JobSetState, TrainJobState, decoded},
};

/// The field manager of everything that is written.
pub(super) const MANAGER: &str = "trainer";

/// One reconcile of one TrainJob.
pub(super) struct Context<'a> {
    pub(super) reconciler: &'a Reconciler,
    pub(super) key: &'a NamespacedName,
    pub(super) worker: &'a Worker,
    /// When the reconcile began.
    pub(super) now: Timestamp,
    /// The TrainJob as it was in the store at that time.
    pub(super) job: Option<Arc<TrainJobState>>,
    /// What vouches for its snapshot.
    pub(super) voucher: Voucher,
    /// The last state of a deleted JobSet, if there was no other JobSet.
    pub(super) deleted_job_set: Option<Arc<JobSetState>>,
}

impl Context<'_> {
    /// Returns the TrainJob as it was in the store when the reconcile began.
    pub(super) fn job(&self) -> Result<&Arc<TrainJobState>, ReconcileError> {
        let job = self.job.as_ref();
        job.ok_or_else(|| ReconcileError::out_of_order("the TrainJob"))
    }

    /// Returns the API of a kind in the TrainJob's namespace.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.reconciler.client.clone(), &self.key.namespace)
    }

    /// Returns the API of ConfigMaps in the TrainJob's namespace.
    pub(super) fn config_maps(&self) -> Api<ConfigMap> {
        self.api()
    }

    /// Returns the API of a kind that plugins emit. The kind is checked, because it becomes part of a URL.
    pub(super) fn emitted(&self, kind: &ObjectKind) -> Api<DynamicObject> {
        self.dynamic(&kind_of(kind.api_version(), kind.kind()))
    }

    /// Returns the API of a kind. Its resource name is derived by the rule of Kubernetes' own kinds.
    pub(super) fn dynamic(&self, kind: &GroupVersionKind) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(kind);
        let client = self.reconciler.client.clone();
        Api::namespaced_with(client, &self.key.namespace, &resource)
    }

    /// Reads the object of that name in the TrainJob's namespace; `None` if it does not exist.
    pub(super) async fn read<K>(&self, name: &str) -> Result<Option<K>, ReconcileError>
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
    pub(super) async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.reconciler.client.request_text(request).await
    }

    /// Runs a task on a blocking thread, such as parsing or rendering. Other reconciles can use the worker in the meantime.
    pub(super) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        let done = self.reconciler.plugins.run(&self.key.namespace, work);
        Ok(self.worker.free_while(done).await?)
    }
}

/// Returns the parameters of patches.
pub(super) fn merging() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Returns the parameters of creations.
pub(super) fn creating() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

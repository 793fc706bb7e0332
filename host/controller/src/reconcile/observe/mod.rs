//! Observations: each reads something that a decision needs. They never write to the cluster.

mod creation;
mod job_set;
mod jobs;
mod live_train_job;
mod lookups;
mod objects;
mod placement;
mod rendering;
mod runtime;
mod snapshot;
pub(super) mod train_job;

use kube::{
    Resource as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};

use super::{
    artifacts::Artifacts, context::Context, error::ReconcileError, inputs::Inputs, observed::Fact,
    step::Observe,
};
use crate::{
    fair::FairSemaphore,
    watch::{Feed, FeedError},
};

/// Makes an observation.
pub(super) async fn observe(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    what: &Observe,
) -> Result<Fact, ReconcileError> {
    match what {
        Observe::Inputs => {
            let inputs = Inputs::of(&cx.reconciler.common, cx.job()?);
            Ok(Fact::Inputs(inputs))
        }
        Observe::TrainJob => train_job::get(cx, artifacts).await,
        Observe::LiveTrainJob => live_train_job::get(cx).await,
        Observe::Absence => live_train_job::without_job_set(cx).await,
        Observe::Snapshot => snapshot::get(cx, artifacts).await,
        Observe::SnapshotMarks => snapshot::marks(cx, artifacts).await,
        Observe::Runtime => runtime::get(cx, artifacts).await,
        Observe::Rendering(basis) => rendering::get(cx, artifacts, *basis).await,
        Observe::Lookups(basis) => lookups::get(cx, artifacts, *basis).await,
        Observe::ListedObjects => snapshot::listed(cx).await,
        Observe::ListedObject(object) => objects::listed(cx, artifacts, object).await,
        Observe::Object(object) => objects::get(cx, artifacts, object).await,
        Observe::JobSetOwner => job_set::owner(cx, artifacts).await,
        Observe::LiveJobSet { uid } => job_set::live(cx, artifacts, uid).await,
        Observe::Placement(wanted) => placement::get(cx, artifacts, *wanted).await,
        Observe::Jobs => jobs::get(cx, artifacts).await,
        Observe::Creation => creation::get(cx, artifacts).await,
        Observe::Creatable { held } => job_set::creatable(cx, artifacts, *held).await,
    }
}

/// Lists objects of the JobSet when the namespace may, and returns what `read` keeps of each, which takes that much memory.
async fn list<T: Send + 'static>(
    cx: &Context<'_>,
    at_once: &FairSemaphore,
    kind: &GroupVersionKind,
    params: ListParams,
    read: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    size: impl Fn(&T) -> usize,
) -> Result<Vec<T>, ReconcileError> {
    let path = DynamicObject::url_path(&ApiResource::from_gvk(kind), Some(&cx.key.namespace));
    let feed = Feed::new(cx.reconciler.client.clone(), path, params, read);
    let listed = async {
        let _permit = at_once.acquire(&cx.key.namespace, 1).await;
        feed.all(size).await
    };
    // The namespace determines how long this takes, so it must not take a worker from others.
    let found = cx.worker.free_while(listed).await;
    let found = found.map_err(FeedError::into_call);
    let what = || format!("listing the {}s of JobSet `{}`", kind.kind, cx.key.name);
    found.map_err(|error| ReconcileError::api(what(), error))
}

//! The current runtime of a TrainJob.

use std::sync::Arc;

use trainyard_api::runtime::RuntimeKind;

use crate::{
    reconcile::{
        artifacts::Artifacts, context::Context, error::ReconcileError, observed::Fact,
        snapshot::Snapshot,
    },
    watch::{ReadRuntime, RuntimeKey, RuntimeState},
};

/// Reads the runtime. If it is missing or invalid, its next change triggers a reconcile.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Fact, ReconcileError> {
    let reference = &artifacts.job()?.runtime_ref;
    let stores = &cx.reconciler.stores;
    let (runtimes, namespace) = match reference.kind {
        RuntimeKind::Cluster => (&stores.cluster_runtimes, None),
        RuntimeKind::Namespaced => (&stores.runtimes, Some(cx.key.namespace.clone())),
    };
    let runtime = RuntimeKey {
        namespace,
        name: reference.name.as_str().into(),
    };
    let (kind, name) = (reference.kind.to_string(), reference.name.clone());
    let mut found = read(cx, runtimes.get(&runtime)).await?;
    if !matches!(found, Some(Ok(_))) {
        // The interest is registered before the runtime is read again, so that no change in between is missed.
        cx.reconciler.interests.wait_for(cx.key, &runtime);
        found = read(cx, runtimes.get(&runtime)).await?;
    }
    match found {
        Some(Ok(read)) => {
            artifacts.large().fresh = Some(Snapshot::of(read));
            Ok(Fact::Holds)
        }
        None => Err(ReconcileError::NoRuntime { kind, name }),
        Some(Err(problem)) => Err(ReconcileError::Runtime {
            kind,
            name,
            problem,
        }),
    }
}

/// Reads a runtime, once for all TrainJobs.
async fn read(
    cx: &Context<'_>,
    runtime: Option<Arc<RuntimeState>>,
) -> Result<Option<Result<ReadRuntime, String>>, ReconcileError> {
    let Some(runtime) = runtime else {
        return Ok(None);
    };
    let read = match runtime.known() {
        Some(known) => known,
        None => cx.on_thread(move |_, _| runtime.read()).await?,
    };
    Ok(Some(read))
}

/// Waits for the memory budget of a runtime with that many values. A reconcile waits at most once.
pub(super) async fn reserve_memory(cx: &Context<'_>, artifacts: &mut Artifacts, values: usize) {
    let budget = &cx.reconciler.runtime_budget;
    let held = &mut artifacts.large().runtime_budget;
    if budget.counts(values) && held.is_none() {
        *held = Some(budget.reserve(values, cx.worker).await);
    }
}

//! The current runtime of a TrainJob.

use trainyard_api::runtime::RuntimeKind;

use crate::{
    reconcile::{
        artifacts::Artifacts, context::Context, error::ReconcileError, observed::Fact,
        snapshot::Snapshot,
    },
    watch::{ReadRuntime, RuntimeKey, RuntimeState, Store},
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
    let mut found = read(cx, artifacts, &runtime, runtimes).await?;
    if !matches!(found, Some(Ok(_))) {
        // The interest is registered before the runtime is read again, so that no change in between is missed.
        cx.reconciler.interests.wait_for(cx.key, &runtime);
        found = read(cx, artifacts, &runtime, runtimes).await?;
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

/// Reads a runtime. A small one is parsed once for all TrainJobs; a large one, when the memory budget has room for it.
async fn read(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    key: &RuntimeKey,
    runtimes: &Store<RuntimeKey, RuntimeState>,
) -> Result<Option<Result<ReadRuntime, String>>, ReconcileError> {
    let cache = &cx.reconciler.runtimes;
    let Some(state) = runtimes.get(key) else {
        return Ok(None);
    };
    if let Some(known) = cache.get(key, &state) {
        return Ok(Some(known));
    }
    // A value takes at least two bytes of its text.
    reserve_memory(cx, artifacts, state.len() / 2).await;
    let text = state.clone();
    let read = cx.on_thread(move |_, _| text.read()).await?;
    cache.put(key.clone(), &state, read.clone());
    Ok(Some(read))
}

/// Waits for the memory budget of a runtime or a snapshot with at most that many values, unless as much is reserved already. What was
/// reserved for a smaller one is released first, because two reconciles could wait for each other.
pub(super) async fn reserve_memory(cx: &Context<'_>, artifacts: &mut Artifacts, values: usize) {
    let budget = &cx.reconciler.runtime_budget;
    let held = &mut artifacts.large().runtime_budget;
    let reserved = held.as_ref().map_or(0, |(reserved, _)| *reserved);
    if budget.counts(values) && reserved < values {
        *held = None;
        let reserved = budget.reserve(&cx.key.namespace, values);
        *held = Some((values, cx.worker.free_while(reserved).await));
    }
}

//! The current runtime of a TrainJob, and the memory for the values of runtimes and snapshots.

use trainyard_api::runtime::RuntimeKind;

use super::{LiveCluster, train_jobs::AdmittedTrainJob};
use crate::{
    reconcile::{
        cluster::{Result, Runtimes},
        error::ReconcileError,
        snapshot::Snapshot,
    },
    watch::{ReadRuntime, RuntimeKey, RuntimeState, Store},
};

impl Runtimes for LiveCluster<'_> {
    /// If it is missing or invalid, its next change triggers a reconcile.
    async fn runtime(&mut self, job: &AdmittedTrainJob) -> Result<Snapshot> {
        let reference = &job.job.runtime_ref;
        let stores = &self.reconciler.stores;
        let (runtimes, namespace) = match reference.kind {
            RuntimeKind::Cluster => (&stores.cluster_runtimes, None),
            RuntimeKind::Namespaced => (&stores.runtimes, Some(self.key.namespace.clone())),
        };
        let runtime = RuntimeKey {
            namespace,
            name: reference.name.as_str().into(),
        };
        let mut found = self.read_runtime(&runtime, runtimes).await?;
        if !matches!(found, Some(Ok(_))) {
            // The interest is registered before the runtime is read again, so that no change in between is missed.
            self.reconciler.interests.wait_for(self.key, &runtime);
            found = self.read_runtime(&runtime, runtimes).await?;
        }
        let (kind, name) = (reference.kind.to_string(), reference.name.clone());
        match found {
            Some(Ok(read)) => Ok(Snapshot::of(read)),
            None => Err(ReconcileError::NoRuntime { kind, name }),
            Some(Err(problem)) => Err(ReconcileError::Runtime {
                kind,
                name,
                problem,
            }),
        }
    }
}

impl LiveCluster<'_> {
    /// Reads a runtime. A small one is parsed once for all TrainJobs; a large one, when the memory budget has room for it.
    async fn read_runtime(
        &mut self,
        key: &RuntimeKey,
        runtimes: &Store<RuntimeKey, RuntimeState>,
    ) -> Result<Option<Result<ReadRuntime, String>>> {
        let cache = &self.reconciler.runtimes;
        let Some(state) = runtimes.get(key) else {
            return Ok(None);
        };
        if let Some(known) = cache.get(key, &state) {
            return Ok(Some(known));
        }
        // A value takes at least two bytes of its text.
        self.reserve_memory(state.len() / 2).await;
        let text = state.clone();
        let read = self.on_thread(move |_, _| text.read()).await?;
        cache.put(key.clone(), &state, read.clone());
        Ok(Some(read))
    }

    /// Waits for the memory budget of a runtime or a snapshot with at most that many values, unless as much is reserved already. What was
    /// reserved for a smaller one is released first, because two reconciles could wait for each other.
    pub(super) async fn reserve_memory(&mut self, values: usize) {
        let budget = &self.reconciler.runtime_budget;
        let reserved = self.runtime_memory.as_ref();
        let reserved = reserved.map_or(0, |(reserved, _)| *reserved);
        if budget.counts(values) && reserved < values {
            self.runtime_memory = None;
            let reserved = budget.reserve(&self.key.namespace, values);
            self.runtime_memory = Some((values, self.worker.free_while(reserved).await));
        }
    }
}

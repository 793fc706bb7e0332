//! The current runtime of a TrainJob, and the memory for the values of runtimes and snapshots.

use std::sync::Arc;

use kube::api::ListParams;
use trainyard_api::{TrainJob, runtime::RuntimeKind, trainjob::RuntimeRef};
use trainyard_render::{Problem, Renderer};

use super::{LiveCluster, train_jobs::AdmittedTrainJob};
use crate::{
    reconcile::{
        cluster::{Result, Runtimes},
        error::ReconcileError,
        snapshot::Snapshot,
    },
    watch::{
        ClusterRuntimeObject, Decode, Feed, FeedError, Read, ReadRuntime, RuntimeKey,
        RuntimeObject, RuntimeState, Store, read,
    },
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
    /// Reads the TrainJob's runtime from the API server, for a watch that may be behind. The store is left unchanged.
    pub(in crate::reconcile) async fn live_runtime(
        &mut self,
        job: &AdmittedTrainJob,
    ) -> Result<Snapshot> {
        let RuntimeRef { kind, name } = &job.job.runtime_ref;
        let namespace = &*self.key.namespace;
        let found = match kind {
            RuntimeKind::Cluster => self.live::<ClusterRuntimeObject>(None, name).await,
            RuntimeKind::Namespaced => self.live::<RuntimeObject>(Some(namespace), name).await,
        };
        let what = || format!("reading {kind} `{name}`");
        let found = found.map_err(|error| ReconcileError::api(what(), error))?;
        let invalid = |problem: String| ReconcileError::Runtime {
            kind: kind.to_string(),
            name: name.clone(),
            problem,
        };
        let state = match found {
            None => {
                let (kind, name) = (kind.to_string(), name.clone());
                return Err(ReconcileError::NoRuntime { kind, name });
            }
            Some(read) => read.map_err(|unreadable| invalid(unreadable.why.to_string()))?,
        };
        self.reserve_memory(state.len() / 2).await;
        let read = self.on_thread(move |_, _| state.read()).await?;
        read.map(Snapshot::of).map_err(invalid)
    }

    /// Lists the runtime of that name. A list needs no other permission than the watch.
    async fn live<W>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Read<RuntimeState>>, kube::Error>
    where
        W: Decode<State = RuntimeState>,
    {
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let path = W::url_path(&(), namespace);
        // A name that is none can select another object.
        let wanted = W::key(namespace, name);
        let state = move |object: &str| {
            let (key, state) = read::<W>(object).ok()?;
            (Some(key) == wanted).then_some(state)
        };
        let feed = Feed::new(self.reconciler.client.clone(), path, params, state);
        let size = |state: &Read<RuntimeState>| state.as_ref().map_or(0, RuntimeState::len);
        let found = feed.all(size).await.map_err(FeedError::into_call)?;
        Ok(found.into_iter().next())
    }

    /// Returns the problems of a TrainJob that has started which are found before a plugin is called. There are none if a generation that keeps its
    /// plan finds none.
    pub(in crate::reconcile) async fn plan(
        &self,
        job: &Arc<TrainJob>,
        snapshot: &Snapshot,
    ) -> Result<Result<(), Vec<Problem>>> {
        let keeping = snapshot.plan.as_ref().map(|plan| self.pinned.keeping(plan));
        let mut generations = keeping.unwrap_or_default();
        if generations.is_empty() {
            generations.push(self.pinned.generation().clone());
        }
        let mut first = Ok(());
        for generation in generations {
            let (job, runtime) = (job.clone(), snapshot.runtime.clone());
            let namespace = self.key.namespace.clone();
            let plan = move |renderer: &Renderer, _: &_| renderer.plan(&job, &runtime, &namespace);
            match self.on_thread_with(&generation, plan).await? {
                Ok(_) => return Ok(Ok(())),
                Err(problems) if first.is_ok() => first = Err(problems),
                Err(_) => {}
            }
        }
        Ok(first)
    }

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
        let stores = &self.reconciler.stores;
        let exists = |key: &RuntimeKey| match key.namespace {
            Some(_) => stores.runtimes.get(key).is_some(),
            None => stores.cluster_runtimes.get(key).is_some(),
        };
        cache.put(key.clone(), &state, read.clone(), exists);
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

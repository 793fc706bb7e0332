//! The reconciler: the state that reconciles share, and that is kept between them.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use trainyard_api::names;
use trainyard_model::facts::HostFacts;

use super::{
    deleted_job_sets::DeletedJobSets,
    fetch::Fetcher,
    last_reconcile::{AnnotationWrite, LastReconcile},
    status,
};
use crate::{
    certificate::{Clock, SystemClock},
    fair::{FairSemaphore, MemoryBudget},
    generation::{Generations, Pinned},
    log_shares::LogShares,
    metrics::{HeldText, Metrics},
    queue::NamespacedName,
    threads::Threads,
    watch::{
        DeletedObject, Interests, JobSetState, Kinds, Lists, RuntimeCache, RuntimeKey,
        RuntimeState, Store, TrainJobState,
    },
};

/// The maximum number of lists that are read at once to find out why Jobs or pods are missing, each from a different namespace. If this
/// were 1, a namespace with slow lists would delay those of all others: the API server reads all Events of the namespace for one, and the accounts that may create them
/// there determine how large and slow it is.
const DIAGNOSES_AT_ONCE: usize = 2;

/// The most lists of Jobs that are read at once before JobSets are unsuspended, each of another namespace. They do not wait for the lists
/// above, and a namespace with slow ones delays only itself.
const RESUMES_AT_ONCE: usize = 16;

/// The stores of watched objects.
#[derive(Debug, Default)]
pub struct Stores {
    /// TrainJobs.
    pub jobs: Store<NamespacedName, TrainJobState>,
    /// JobSets.
    pub job_sets: Store<NamespacedName, JobSetState>,
    /// Runtimes of namespaces.
    pub runtimes: Store<RuntimeKey, RuntimeState>,
    /// Runtimes of the cluster.
    pub cluster_runtimes: Store<RuntimeKey, RuntimeState>,
}

impl Stores {
    /// Waits until all stores are synced.
    pub(crate) async fn synced(&self) {
        self.jobs.synced().await;
        self.job_sets.synced().await;
        self.runtimes.synced().await;
        self.cluster_runtimes.synced().await;
    }

    /// Returns the bytes of text that are held of each kind, for each namespace.
    pub(crate) fn held_text(&self) -> Vec<HeldText> {
        vec![
            (names::TRAIN_JOB, self.jobs.text_bytes()),
            (names::TRAINING_RUNTIME, self.runtimes.text_bytes()),
            (
                names::CLUSTER_TRAINING_RUNTIME,
                self.cluster_runtimes.text_bytes(),
            ),
        ]
    }
}

/// Reconciles TrainJobs.
pub struct Reconciler {
    pub(super) client: Client,
    pub(super) stores: Arc<Stores>,
    /// The plugins that TrainJobs are rendered with.
    pub(crate) generations: Arc<Generations>,
    /// The threads on which plugins are called, apart from those that answer probes.
    pub(super) threads: Threads,
    pub(super) fetcher: Fetcher,
    pub(crate) kinds: Arc<Kinds>,
    /// The lists that plugins look up.
    pub(crate) lists: Arc<Lists>,
    /// The cluster objects that TrainJobs which have not started were rendered from, or wait for.
    pub(crate) interests: Arc<Interests>,
    /// The memory budgets for large TrainJobs, and for TrainJobs of large runtimes.
    pub(super) budget: MemoryBudget,
    pub(super) runtime_budget: MemoryBudget,
    /// The small runtimes that were parsed last.
    pub(super) runtimes: Arc<RuntimeCache>,
    /// The result of the last reconcile of each TrainJob, if everything was up to date; `None` if it began to write and did not end.
    last: Mutex<HashMap<NamespacedName, Option<LastReconcile>>>,
    /// The last write of the annotation of each TrainJob about its error.
    annotated: Mutex<HashMap<NamespacedName, AnnotationWrite>>,
    /// The last states of deleted JobSets. Without them, a JobSet that ended would be recreated if its TrainJob's status is outdated.
    pub(super) deleted_job_sets: DeletedJobSets,
    /// Limits the lists of Events and Jobs that are read to find out why Jobs or pods are missing.
    pub(super) diagnoses: FairSemaphore,
    /// Limits the lists of Jobs that are read before a JobSet is unsuspended.
    pub(super) resumes: FairSemaphore,
    /// The shares of the log that namespaces have.
    pub(crate) log: Arc<LogShares>,
    pub(super) metrics: Arc<Metrics>,
    /// The clock of deadlines and of other times of the cluster.
    clock: Arc<dyn Clock>,
}

impl Reconciler {
    /// Returns the same with another clock.
    pub(crate) fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::try_from(self.clock.now()).unwrap_or_else(|_| Timestamp::now())
    }

    /// Returns the host's own facts, with which TrainJobs are rendered.
    pub(crate) fn host_facts(&self) -> &HostFacts {
        self.generations.host_facts()
    }

    /// Returns the generation of a namespace for a reconcile that begins.
    pub(crate) fn pin(&self, namespace: &str) -> Pinned {
        self.generations.pin(namespace)
    }

    /// Returns a reconciler that uses this client, these plugins and the threads for them.
    pub(crate) fn new(
        client: Client,
        stores: Arc<Stores>,
        (generations, threads): (Arc<Generations>, Threads),
        log: Arc<LogShares>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let kinds = Arc::new(Kinds::new(client.clone()));
        let lists = Arc::new(Lists::default());
        Self {
            fetcher: Fetcher::new(client.clone(), kinds.clone(), lists.clone(), log.clone()),
            kinds,
            lists,
            interests: Arc::default(),
            budget: MemoryBudget::of_texts(),
            runtime_budget: MemoryBudget::of_runtimes(),
            runtimes: Arc::default(),
            client,
            stores,
            generations,
            threads,
            last: Mutex::default(),
            annotated: Mutex::default(),
            deleted_job_sets: DeletedJobSets::default(),
            diagnoses: FairSemaphore::new(DIAGNOSES_AT_ONCE, NonZeroUsize::MIN),
            resumes: FairSemaphore::new(RESUMES_AT_ONCE, NonZeroUsize::MIN),
            log,
            metrics,
            clock: Arc::new(SystemClock),
        }
    }

    /// Returns a reconciler for dry runs that render within that time. It shares the stores, the caches and the memory budgets, but not what
    /// reconciles remember of TrainJobs.
    pub(crate) fn for_dry_runs(&self, limit: Duration) -> Self {
        let (kinds, lists) = (self.kinds.clone(), self.lists.clone());
        let (client, log) = (self.client.clone(), self.log.clone());
        let plugins = (self.generations.clone(), self.threads.with_limit(limit));
        Self {
            fetcher: Fetcher::new(client.clone(), kinds.clone(), lists.clone(), log.clone()),
            kinds,
            lists,
            budget: self.budget.clone(),
            runtime_budget: self.runtime_budget.clone(),
            runtimes: self.runtimes.clone(),
            ..Self::new(
                client,
                self.stores.clone(),
                plugins,
                log,
                self.metrics.clone(),
            )
        }
    }

    /// Returns the same reconciler for dry runs that find out whether plugins fail.
    pub(crate) fn judging(self) -> Self {
        Self {
            threads: self.threads.judging(),
            ..self
        }
    }

    /// Stops rendering because the process ends. Finished renderings are still written.
    pub(crate) fn end(&self) {
        self.threads.end();
    }

    /// Keeps the last state of a deleted JobSet until the TrainJob's status has its end.
    pub(crate) fn job_set_deleted(&self, key: &NamespacedName, gone: DeletedObject<JobSetState>) {
        let jobs = &self.stores.jobs;
        let has_end = match jobs.get(key) {
            Some(job) => status::end(&job.status).is_some(),
            // It may be in the first list, or a later version may be readable.
            None => jobs.is_synced() && jobs.unreadable(key).is_none(),
        };
        if !has_end {
            self.deleted_job_sets.note(key, gone.last, gone.was_seen);
        }
    }

    /// Drops the state of a deleted JobSet whose TrainJob has ended or was deleted, and the annotation write of a deleted TrainJob. A
    /// controller that waits for leadership does not reconcile, and would keep them forever.
    pub(crate) fn job_changed(&self, key: &NamespacedName) {
        let Stores { jobs, .. } = &*self.stores;
        let (job, is_unreadable) = (jobs.get(key), jobs.unreadable(key).is_some());
        if job.is_none() && !is_unreadable {
            self.annotated().remove(key);
        }
        let waits = |job: Arc<TrainJobState>| status::end(&job.status).is_none();
        if !(job.is_some_and(waits) || is_unreadable) {
            self.deleted_job_sets.forget(key);
        }
    }

    /// Whether this controller was the last to write this annotation about the error; `None` is its removal.
    pub(crate) fn has_annotated(&self, key: &NamespacedName, error: Option<&str>) -> bool {
        let annotated = self.annotated();
        annotated
            .get(key)
            .is_some_and(|last| last.text.as_deref() == error)
    }

    #[cfg(test)]
    pub(crate) fn note_annotation(&self, key: &NamespacedName, error: Option<&str>) {
        let write = AnnotationWrite {
            uid: Box::default(),
            text: error.map(Arc::from),
            at: k8s_openapi::jiff::Timestamp::now(),
            refused: false,
        };
        self.annotated().insert(key.clone(), write);
    }

    /// The number of entries that are kept of TrainJobs: last results, annotations and deleted JobSets.
    #[cfg(test)]
    pub(crate) fn count_kept(&self) -> [usize; 3] {
        [
            self.last().len(),
            self.annotated().len(),
            self.deleted_job_sets.len(),
        ]
    }

    /// Notes that a TrainJob is up to date with the plugins of its namespace.
    #[cfg(test)]
    pub(crate) fn note_last(&self, key: &NamespacedName) {
        let last = LastReconcile {
            uid: Box::default(),
            fingerprint: 0,
            common: self.pin(&key.namespace).generation().common.clone(),
            job_set: None,
            objects: None,
        };
        self.last().insert(key.clone(), Some(last));
    }

    /// Notes that a reconcile succeeded, and forgets its write of the annotation about an error. Returns whether the TrainJob has to be
    /// reconciled again, because the watch has shown the annotation of an earlier reconcile only now.
    pub(crate) fn note_success(&self, key: &NamespacedName) -> bool {
        let had_error = {
            let mut annotated = self.annotated();
            let had_error = annotated.get(key).is_some_and(|last| last.text.is_some());
            if had_error {
                annotated.remove(key);
            }
            had_error
        };
        // Read after the write was forgotten: an annotation that the watch shows from now on triggers a reconcile.
        let job = || self.stores.jobs.get(key);
        had_error && job().is_some_and(|job| job.error.is_some())
    }

    pub(super) fn annotated(&self) -> MutexGuard<'_, HashMap<NamespacedName, AnnotationWrite>> {
        self.annotated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn last(&self) -> MutexGuard<'_, HashMap<NamespacedName, Option<LastReconcile>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

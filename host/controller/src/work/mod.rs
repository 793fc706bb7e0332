//! The [`watches`] fill the stores and the queue; workers take TrainJobs from the queue and reconcile them.

mod generations;
mod shadow;
#[cfg(test)]
mod tests;
mod watches;

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use trainyard_api::names;

use crate::{
    census,
    events::Recorder,
    failures::Failures,
    log_shares::AllowedLine,
    metrics::{Metrics, Outcome, TrainJobCounts},
    queue::{NamespacedName, Queue, Running},
    reconcile::{ReconcileError, ReconcileOutcome, Reconciler, Stores, TEMPORARY, waits},
    serve::Readiness,
    shadow::Shadow,
    spans,
};

/// The reason of the Event when a reconcile fails. It is the reference's.
const REASON: &str = "TrainJobResourcesCreationFailed";

/// The reason of the Event for a warning about a TrainJob that is reconciled nevertheless.
const WARNING: &str = "TrainJobWarning";

/// What the controller was doing, as Events say.
const ACTION: &str = "Reconciling";

/// How often an error that affects all TrainJobs, such as an outage of the API server, is reported while it lasts.
const CLUSTER_WIDE_EVENT_EVERY: Duration = Duration::from_secs(300);

/// How long running reconciles may take to finish when the process stops.
const DRAIN: Duration = Duration::from_secs(20);

/// The state that watches and workers share.
pub(crate) struct Work {
    pub(crate) client: Client,
    pub(crate) stores: Arc<Stores>,
    pub(crate) queue: Queue,
    pub(crate) reconciler: Reconciler,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) readiness: Arc<Readiness>,
    /// The last failures of TrainJobs.
    pub(crate) failures: Failures,
    /// What the shadow mode finds. In it, TrainJobs are not reconciled.
    pub(crate) shadow: Option<Arc<Shadow>>,
    /// Whether TrainJobs are queued: only by the leader.
    pub(crate) leads: AtomicBool,
}

impl Work {
    fn add(&self, key: &NamespacedName, after: Duration) {
        if self.leads.load(Ordering::SeqCst) {
            self.queue.add_after(key.clone(), after);
        }
    }

    fn add_all(&self) {
        for key in self.stores.jobs.keys() {
            self.add(&key, Duration::ZERO);
        }
    }

    /// Reconciles until `stop`. Running reconciles then have some time to finish. If the future is dropped, they stop at once.
    pub(crate) async fn run(self: &Arc<Self>, stop: &CancellationToken) {
        // The flag is set first, so a change in between is queued twice rather than never.
        self.leads.store(true, Ordering::SeqCst);
        self.add_all();
        let mut tasks = JoinSet::new();
        while let Some(running) = self.next(stop).await {
            let work = Arc::clone(self);
            tasks.spawn(async move { work.reconcile(running).await });
            // Finished tasks are removed.
            while tasks.try_join_next().is_some() {}
        }
        self.reconciler.end();
        tokio::select! {
            () = async { while tasks.join_next().await.is_some() {} } => {}
            () = tokio::time::sleep(DRAIN) => tracing::warn!(running = tasks.len(), "some reconciles did not finish in time and are canceled"),
        }
    }

    /// Returns the next TrainJob, once a worker is free.
    async fn next(&self, stop: &CancellationToken) -> Option<Running> {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            next = self.queue.next() => next,
        }
    }

    async fn reconcile(&self, running: Running) {
        if let Some(shadow) = &self.shadow {
            return self.compare(shadow, running).await;
        }
        let key = running.key().clone();
        let span = tracing::info_span!("reconcile", namespace = &*key.namespace, job = &*key.name);
        let uid = self.stores.jobs.get(&key).map(|job| job.uid.to_string());
        spans::note(&span, "uid", uid.unwrap_or_default());
        let pinned = self.reconciler.pin(&key.namespace);
        spans::note(&span, "plan", pinned.generation().plan().clone());
        let started = Instant::now();
        // The state that a reconciler keeps between reconciles is updated in single steps, so a panic leaves it consistent.
        let failing_for = running.failing().now;
        let reconciled = self
            .reconciler
            .reconcile(&key, running.worker(), pinned, failing_for);
        let result = AssertUnwindSafe(reconciled)
            .catch_unwind()
            .instrument(span.clone())
            .await;
        let outcome = span.in_scope(|| match result {
            Ok(ReconcileOutcome {
                requeue_after,
                reports,
                error,
            }) => {
                let warnings = reports.iter().filter_map(|it| it.warning(&key.name));
                let warnings: Vec<_> = warnings.collect();
                if let Some(job) = self.reference(&key) {
                    self.recorder.warn_each(&job, WARNING, ACTION, &warnings);
                }
                match error {
                    None => {
                        match waits(&reports) {
                            Some(waits) => _ = self.failures.note(&key, waits),
                            None => self.failures.forget(&key),
                        }
                        if self.reconciler.note_success(&key) {
                            self.add(&key, Duration::ZERO);
                        }
                        succeeded(running, requeue_after)
                    }
                    Some(error) => self.failed(running, &error, requeue_after),
                }
            }
            Err(_) => {
                let retry_after = running.fail();
                let error = ReconcileError::Internal("the reconcile panicked".to_owned());
                self.failures.note(&key, &error);
                tracing::error!(
                    ?retry_after,
                    "a reconcile panicked; this is a bug in Trainyard"
                );
                Outcome::Error("panic")
            }
        });
        let failed = matches!(outcome, Outcome::Error(_));
        spans::end(&span, ("outcome", outcome.name()), failed);
        self.metrics.reconciled(outcome, started.elapsed());
    }

    fn failed(
        &self,
        running: Running,
        error: &ReconcileError,
        requeue_after: Option<Duration>,
    ) -> Outcome {
        let key = running.key().clone();
        let failing = running.failing();
        let times = self.failures.note(&key, error);
        // A conflict ends once the watch has caught up.
        let retry_after = if error.is_outage() || error.is_conflict() {
            running.fail_in_outage()
        } else {
            running.fail()
        };
        if let Some(after) = requeue_after {
            self.queue.add_after(key.clone(), after);
        }
        if error.is_temporary() && failing.now < TEMPORARY {
            tracing::debug!(%error, ?retry_after, "reconcile failed for a temporary reason; retrying");
            return Outcome::Error(error.kind());
        }
        self.log_failure(&key, error, times, retry_after);
        // An Event with the same message is counted on the first one.
        if !error.is_cluster_wide() {
            self.record_failure(&key, &error.sentences());
        } else if failing.passes(CLUSTER_WIDE_EVENT_EVERY) {
            // The error affects all TrainJobs. An Event for each of them at each retry would add to the load of the API server.
            let minutes = CLUSTER_WIDE_EVENT_EVERY.as_secs() / 60;
            let note = format!("failing for more than {minutes} minutes; still retrying: {error}");
            self.record_failure(&key, &[note]);
        }
        Outcome::Error(error.kind())
    }

    /// Logs a failure, if its namespace has not used up its share of the log.
    fn log_failure(
        &self,
        key: &NamespacedName,
        error: &ReconcileError,
        times: u32,
        retry_after: Duration,
    ) {
        let Some(AllowedLine { left_out }) = self.reconciler.log.allow(&key.namespace) else {
            return;
        };
        let is_due = self.failures.take_due(key, Instant::now());
        let error_text = is_due.then(|| tracing::field::display(error));
        let reason = error.reason();
        if times > 1 {
            tracing::warn!(
                reason,
                error = error_text,
                times,
                ?retry_after,
                left_out,
                "reconcile failed again with the same error; retrying with backoff"
            );
        } else {
            tracing::warn!(reason, %error, ?retry_after, left_out, "reconcile failed; retrying with backoff");
        }
    }

    /// Counts the TrainJobs in each state; `None` if another process reconciles them.
    pub(crate) fn count_train_jobs(&self) -> Option<TrainJobCounts> {
        if !self.leads.load(Ordering::SeqCst) || self.shadow.is_some() {
            return None;
        }
        let Stores { jobs, job_sets, .. } = &*self.stores;
        let mut counts = TrainJobCounts::new();
        for (key, job) in jobs.objects() {
            let labels = census::labels(
                &job,
                job_sets.get(&key).as_deref(),
                self.failures.cause(&key),
            );
            *counts.entry(labels).or_default() += 1;
        }
        if let unreadable @ 1.. = jobs.count_unreadable() {
            let count = counts.entry(census::UNREADABLE).or_default();
            *count += u64::try_from(unreadable).unwrap_or(u64::MAX);
        }
        Some(counts)
    }

    /// Records the Event of a failure.
    fn record_failure(&self, key: &NamespacedName, sentences: &[String]) {
        if let Some(job) = self.reference(key) {
            self.recorder.warn(&job, REASON, ACTION, sentences);
        }
    }

    /// Returns the reference to a TrainJob in the store.
    fn reference(&self, key: &NamespacedName) -> Option<ObjectReference> {
        let jobs = &self.stores.jobs;
        let readable = jobs
            .get(key)
            .map(|job| (job.uid.to_string(), job.resource_version()));
        let unreadable = || {
            let job = jobs.unreadable(key)?;
            Some((job.uid.to_string(), job.resource_version()))
        };
        let (uid, resource_version) = readable.or_else(unreadable)?;
        Some(ObjectReference {
            api_version: Some(names::TRAINER_API_VERSION.to_owned()),
            kind: Some(names::TRAIN_JOB.to_owned()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: Some(uid),
            resource_version: Some(resource_version),
            ..ObjectReference::default()
        })
    }
}

fn succeeded(running: Running, requeue_after: Option<Duration>) -> Outcome {
    match requeue_after {
        None => {
            running.succeed();
            Outcome::Success
        }
        Some(after) => {
            running.succeed_and_add_after(after);
            Outcome::RequeueAfter
        }
    }
}

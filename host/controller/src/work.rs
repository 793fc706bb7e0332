//! The work: watches fill the stores and the queue, workers empty it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, select_all};
use futures_util::{FutureExt as _, future::BoxFuture};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use trainyard_api::names;

use crate::events::Recorder;
use crate::metrics::{Metrics, Outcome};
use crate::queue::{Key, Queue, Running};
use crate::reconcile::{Reconciler, Stores};
use crate::serve::Readiness;
use crate::watch::{
    ClusterRuntimeObject, JobSetObject, LookupWatches, RuntimeKey, RuntimeObject, Store,
    TrainJobObject, Watched, follow,
};

/// For how long changes of a JobSet are gathered before its TrainJob follows: each would be a write of its status.
const GATHER: Duration = Duration::from_millis(250);

/// The reason of the Event of a TrainJob that can't get on, which is the reference's.
const REASON: &str = "TrainJobResourcesCreationFailed";

/// The reason of the Event of what its author should know of a TrainJob that goes on.
const WARNING: &str = "TrainJobWarning";

/// What watches and workers share.
pub(crate) struct Work {
    pub(crate) client: Client,
    pub(crate) stores: Arc<Stores>,
    pub(crate) queue: Queue,
    pub(crate) reconciler: Reconciler,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) readiness: Arc<Readiness>,
}

impl Work {
    /// Watches until it is dropped.
    pub(crate) async fn watch(&self) {
        let woken = |runtime: &RuntimeKey, _| {
            for woken in self.reconciler.interests.runtime_changed(runtime) {
                self.queue.add(woken.key);
            }
        };
        let stores = &self.stores;
        let lookups = LookupWatches {
            client: self.client.clone(),
            kinds: self.reconciler.kinds.clone(),
            interests: self.reconciler.interests.clone(),
            queue: self.queue.clone(),
        };
        let watches: [BoxFuture<'_, ()>; 5] = [
            self.follow::<TrainJobObject>(names::TRAIN_JOB, &stores.jobs, |key, _| {
                self.queue.add(key.clone());
            })
            .boxed(),
            self.follow::<JobSetObject>(names::JOB_SET, &stores.job_sets, |key, gone| {
                if let Some(gone) = gone {
                    self.reconciler.ended(key, gone);
                }
                self.queue.add_after(key.clone(), GATHER);
            })
            .boxed(),
            self.follow::<RuntimeObject>(names::TRAINING_RUNTIME, &stores.runtimes, woken)
                .boxed(),
            self.follow::<ClusterRuntimeObject>(
                names::CLUSTER_TRAINING_RUNTIME,
                &stores.cluster_runtimes,
                woken,
            )
            .boxed(),
            Arc::new(lookups).run().boxed(),
        ];
        select_all(watches).await;
    }

    async fn follow<W: Watched>(
        &self,
        part: &'static str,
        store: &Store<W::Key, W::State>,
        changed: impl Fn(&W::Key, Option<W::State>),
    ) {
        let absent = |why| match why {
            // One that is deleted later takes nothing from what is known.
            _ if store.is_synced() => {}
            Some(why) => self.readiness.lacks(part, why),
            None => self.readiness.set(part, false),
        };
        follow::<W>(&self.client, store, absent, changed).await;
    }

    /// Reconciles until `stop`; what runs then runs to its end.
    pub(crate) async fn run(&self, workers: usize, stop: &CancellationToken) {
        let workers = (0..workers.max(1)).map(|_| async {
            while let Some(running) = self.next(stop).await {
                self.one(running).await;
            }
        });
        join_all(workers).await;
    }

    async fn next(&self, stop: &CancellationToken) -> Option<Running> {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            running = self.queue.next() => running,
        }
    }

    async fn one(&self, running: Running) {
        let key = running.key().clone();
        let span = tracing::info_span!("reconcile", namespace = &*key.namespace, job = &*key.name);
        let started = Instant::now();
        let result = self
            .reconciler
            .reconcile(&key)
            .instrument(span.clone())
            .await;
        let outcome = span.in_scope(|| match result {
            Ok(done) => {
                for warning in &done.warnings {
                    self.tell(&key, WARNING, &warning.to_string());
                }
                match done.again {
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
            Err(error) => {
                let again = if error.is_outage() {
                    running.fail_in_outage()
                } else {
                    running.fail()
                };
                if error.is_passing() {
                    tracing::debug!(%error, ?again, "tried again");
                } else {
                    tracing::warn!(%error, ?again, "the TrainJob can't get on");
                    self.tell(&key, REASON, &error.to_string());
                }
                Outcome::Error(error.kind())
            }
        });
        self.metrics.reconciled(outcome, started.elapsed());
    }

    /// Tells whoever looks at the TrainJob.
    fn tell(&self, key: &Key, reason: &str, note: &str) {
        let Some(job) = self.stores.jobs.get(key) else {
            return;
        };
        let regarding = ObjectReference {
            api_version: Some(names::TRAINER_API_VERSION.to_owned()),
            kind: Some(names::TRAIN_JOB.to_owned()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: Some(job.uid.to_string()),
            resource_version: Some(job.resource_version()),
            ..ObjectReference::default()
        };
        self.recorder.warn(regarding, reason, "Reconciling", note);
    }
}

//! The watches, which fill the stores and the queue.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, select_all},
};
use trainyard_api::names;

use super::Work;
use crate::{
    queue::NamespacedName,
    watch::{
        Change, ClusterRuntimeObject, Decode, Follower, Health, JobSetObject, LookupWatches,
        Requeue, RuntimeKey, RuntimeObject, StateReplaced, Store, TrainJobObject, TrainJobState,
        follow,
    },
};

/// How long changes of a JobSet are batched before its TrainJob is reconciled. Each reconcile may write the status.
const GATHER_JOB_SET_CHANGES: Duration = Duration::from_millis(250);

impl Work {
    /// Watches until the state of the API server is replaced by an older one. The stores, and what reconciles remember, no longer describe
    /// the cluster, and some reconciles are still running.
    pub(crate) async fn watch(self: Arc<Self>) -> StateReplaced {
        let runtime_changed = |runtime: &RuntimeKey, _| {
            for Requeue { key, after } in self.reconciler.interests.runtime_changed(runtime) {
                self.queue.add_after(key, after);
            }
        };
        let stores = &self.stores;
        let lookups = LookupWatches {
            client: self.client.clone(),
            kinds: self.reconciler.kinds.clone(),
            interests: self.reconciler.interests.clone(),
            lists: self.reconciler.lists.clone(),
            log: self.reconciler.log.clone(),
            queue: self.queue.clone(),
        };
        let watches: [BoxFuture<'_, StateReplaced>; 6] = [
            self.follow::<TrainJobObject>(names::TRAIN_JOB, &stores.jobs, |key, change| {
                self.job_changed(key, &change);
            })
            .boxed(),
            self.follow::<JobSetObject>(names::JOB_SET, &stores.job_sets, |key, change| {
                if let Change::Deleted(gone) = change {
                    self.reconciler.job_set_deleted(key, gone);
                }
                self.add(key, GATHER_JOB_SET_CHANGES);
            })
            .boxed(),
            self.follow::<RuntimeObject>(
                names::TRAINING_RUNTIME,
                &stores.runtimes,
                runtime_changed,
            )
            .boxed(),
            self.follow::<ClusterRuntimeObject>(
                names::CLUSTER_TRAINING_RUNTIME,
                &stores.cluster_runtimes,
                runtime_changed,
            )
            .boxed(),
            Arc::new(lookups).run().map(|never| match never {}).boxed(),
            self.follow_generations()
                .map(|never| match never {})
                .boxed(),
        ];
        select_all(watches).await.0
    }

    async fn follow<W: Decode>(
        &self,
        part: &'static str,
        store: &Store<W::Key, W::State>,
        changed: impl Fn(&W::Key, Change<W::State>),
    ) -> StateReplaced {
        let follower = WatchFollower {
            work: self,
            part,
            store,
            changed,
        };
        follow::<W>(&self.client, store, &follower).await
    }

    pub(super) fn job_changed(&self, key: &NamespacedName, change: &Change<TrainJobState>) {
        self.reconciler.job_changed(key);
        let is_about_others = match change {
            // Pods may report progress every second.
            Change::Updated { before, after } => after.differs_only_in_version(before),
            _ => false,
        };
        if !is_about_others && !self.is_about_the_error(key, change) {
            self.add(key, Duration::ZERO);
        }
    }

    /// Whether only the annotation about the error differs, and that can wait: this controller wrote it, or the TrainJob is retried with
    /// backoff anyway. Otherwise each write of an annotation would end the backoff of the reconcile that wrote it.
    fn is_about_the_error(&self, key: &NamespacedName, change: &Change<TrainJobState>) -> bool {
        let Change::Updated { before, after } = change else {
            return false;
        };
        after.differs_only_in_error(before)
            && (self.reconciler.has_annotated(key, after.error.as_deref())
                || self.failures.cause(key).is_some())
    }
}

/// A follower of one of the watches.
pub(super) struct WatchFollower<'w, K, S, C> {
    pub(super) work: &'w Work,
    pub(super) part: &'static str,
    pub(super) store: &'w Store<K, S>,
    pub(super) changed: C,
}

impl<W, C> Follower<W> for WatchFollower<'_, W::Key, W::State, C>
where
    W: Decode,
    C: Fn(&W::Key, Change<W::State>),
{
    fn heard(&self) {
        self.work.metrics.watch_heard(self.part);
    }

    fn health(&self, health: Health) {
        let (work, readiness) = (self.work, &self.work.readiness);
        let is_synced = self.store.is_synced();
        match health {
            Health::Working => {
                readiness.set(self.part, is_synced);
                if is_synced {
                    // TrainJobs may have waited for this store.
                    work.add_all();
                }
            }
            // If the kind is removed later, the known objects stay.
            Health::NotServed(_) if is_synced => {}
            Health::NotServed(why) | Health::Lost(why) => readiness.note_missing(self.part, why),
        }
    }

    fn changed(&self, key: &W::Key, change: Change<W::State>) {
        let unreadable = self.store.count_unreadable();
        self.work.metrics.set_unreadable(self.part, unreadable);
        (self.changed)(key, change);
    }
}

//! The checks of objects: on the threads of plugins, with the stores and the API server, by a deadline.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use tokio::time::timeout;
use trainyard_api::runtime::RuntimeKind;

use super::{
    Webhook, mutation,
    review::{Body, Review},
    runtime, runtime_patches, stored,
    train_job::Change,
    verdict::Verdict,
};
use crate::{
    fair::{FairSemaphore, Worker},
    queue::NamespacedName,
    reconcile::Reconciler,
    watch::{Decode as _, TrainJobObject},
};

/// The most objects that are checked at once, and the share of a namespace.
const AT_ONCE: usize = 64;
const SHARE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

/// Checks objects.
pub(super) struct Checks {
    reconciler: Reconciler,
    /// The places for checks, for which namespaces take turns.
    places: FairSemaphore,
    deadline: Duration,
}

impl Checks {
    /// Returns checks by the plugins of this reconciler. One rendering may take less time than the whole check, so that the warning
    /// usually says which step was too slow.
    pub(super) fn new(reconciler: &Reconciler, deadline: Duration) -> Self {
        Self {
            reconciler: reconciler.for_dry_runs(deadline.mul_f32(0.8)),
            places: FairSemaphore::new(AT_ONCE, SHARE),
            deadline,
        }
    }

    /// Returns the verdict about the object of a request.
    pub(super) async fn verdict(&self, webhook: Webhook, body: &Body) -> Verdict {
        let Body::Review(review) = body else {
            return Verdict::default();
        };
        let checked = async {
            let worker = Worker::new(&self.places, &review.namespace);
            worker.start().await;
            match webhook {
                Webhook::MutateTrainJob => {
                    mutation::changes(&review.new, review.old.as_ref(), Timestamp::now())
                }
                Webhook::ValidateTrainJob => self.train_job(review, &worker).await,
                Webhook::ValidateTrainingRuntime => {
                    self.runtime(RuntimeKind::Namespaced, review, &worker).await
                }
                Webhook::ValidateClusterTrainingRuntime => {
                    self.runtime(RuntimeKind::Cluster, review, &worker).await
                }
            }
        };
        let overdue = |_| {
            Verdict::unchecked(&format!(
                "the check did not end within {} s, because plugins or the API server are slow, or many objects of this namespace are checked at once",
                self.deadline.as_secs_f32()
            ))
        };
        timeout(self.deadline, checked)
            .await
            .unwrap_or_else(overdue)
    }

    async fn train_job(&self, review: &Review, worker: &Worker) -> Verdict {
        let (new, old) = (&review.new, review.old.as_ref());
        let change = Change::of(new, old);
        if change == Change::Nothing {
            return Verdict::default();
        }
        let refused = |error: String| Verdict::of_errors(&[error], Vec::new());
        let job = match TrainJobObject::decode(&stored::text(new), 0) {
            Ok(job) => Arc::new(job),
            Err(error) => return refused(error.to_string()),
        };
        let key = NamespacedName::new(review.namespace.clone(), stored::name(new));
        let active = || self.reconciler.active_jobs(&key, &job.uid);
        let of_patches = old.and_then(|old| runtime_patches::error_of_update(new, old, active));
        if let Some(error) = of_patches {
            return refused(error);
        }
        let Some(check) = change.check(&job) else {
            return Verdict::default();
        };
        let result = self.reconciler.dry_run(&key, worker, job, check).await;
        Verdict::of_dry_run(result, old.is_some())
    }

    async fn runtime(&self, kind: RuntimeKind, review: &Review, worker: &Worker) -> Verdict {
        if !runtime::is_changed(&review.new, review.old.as_ref()) {
            return Verdict::default();
        }
        let (new, namespace) = (review.new.clone(), review.namespace.clone());
        let is_created = review.old.is_none();
        let check =
            move |renderer: &_| runtime::check(kind, (&new, is_created), &namespace, renderer);
        let checked = self.reconciler.dry_read(&review.namespace, worker, check);
        let failed = |error| Verdict::unchecked(&format!("{error}"));
        checked.await.unwrap_or_else(failed)
    }
}

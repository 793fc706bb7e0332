//! How TrainJobs and runtimes are rendered by two generations: all of them before a rollout (`shadow`), and those that fail in a share of the
//! namespaces (`share`). `pair` judges one, and `subjects` says which are rendered.

mod pair;
mod shadow;
mod share;
mod subjects;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use pair::Rendered;
pub(super) use shadow::Compared;
pub(super) use share::Checked;
use subjects::{AtMost, Subject};

use crate::{
    fair::{FairSemaphore, Worker},
    generation::Generation,
    reconcile::{ReconcileError, Reconciler},
};

/// The most TrainJobs and runtimes, of a namespace and in all, that are rendered although calls of plugins take as long as their limits allow.
const EXHAUSTING_OF_NAMESPACE: usize = 5;
const EXHAUSTING: usize = 20;

/// How long one rendering may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How many renderings are made at once. Most of the machine is for reconciles.
const AT_ONCE: usize = 2;

/// Compares generations, apart from reconciles.
pub(super) struct Comparer {
    reconciler: Reconciler,
    places: FairSemaphore,
}

impl Comparer {
    pub(super) fn new(reconciler: &Reconciler) -> Self {
        Self {
            reconciler: reconciler.for_dry_runs(LIMIT).judging(),
            places: FairSemaphore::new(AT_ONCE, NonZeroUsize::MIN.saturating_add(AT_ONCE)),
        }
    }

    async fn render(
        &self,
        subject: &Subject,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
    ) -> Rendered {
        let worker = Worker::new(&self.places, &subject.key.namespace);
        worker.start().await;
        let of = (&subject.key, &worker);
        let both = self.reconciler.try_render(of, &subject.job, [old, new]);
        both.await
    }
}

/// The TrainJobs and runtimes for which calls of plugins took as long as their limits allow. Calls that judge plugins have no breakers.
struct Exhausting(AtMost<Arc<str>>);

impl Exhausting {
    fn new() -> Self {
        Self(AtMost::new(EXHAUSTING_OF_NAMESPACE))
    }

    /// Whether one more of a namespace is rendered. One that has exhausted nothing always has room, so that others cannot hide what fails there.
    fn has_room(&self, namespace: &Arc<str>) -> bool {
        self.0.has_room(namespace) && (!self.is_full() || !self.0.has_any(namespace))
    }

    /// Whether no more are rendered of namespaces that have exhausted a call.
    fn is_full(&self) -> bool {
        self.0.count().0 >= EXHAUSTING
    }

    fn note(&mut self, namespace: &Arc<str>, both: &Rendered) {
        let mut errors = both.iter().filter_map(|rendered| rendered.as_ref().err());
        if errors.any(ReconcileError::is_of_exhausted_call) {
            self.0.admits(namespace.clone());
        }
    }
}

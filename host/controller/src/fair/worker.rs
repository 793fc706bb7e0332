//! The worker of a reconcile.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::semaphore::{FairSemaphore, Permit};

/// A wait that takes longer is slow.
const SOON: Duration = Duration::from_secs(1);

/// One of the workers, which limit how many TrainJobs are reconciled at once. It becomes free when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    workers: FairSemaphore,
    namespace: Arc<str>,
    /// `None` while the reconcile waits.
    permit: Mutex<Option<Permit>>,
}

impl Worker {
    /// Returns a reconcile's worker, which it gets with [`Self::start`].
    pub(crate) fn new(workers: &FairSemaphore, namespace: &Arc<str>) -> Self {
        Self {
            workers: workers.clone(),
            namespace: namespace.clone(),
            permit: Mutex::default(),
        }
    }

    /// Waits until a worker is free.
    pub(crate) async fn start(&self) {
        self.hold(Some(self.workers.acquire(&self.namespace, 1).await));
    }

    /// Waits for a free worker.
    #[cfg(test)]
    pub(crate) async fn of(workers: &FairSemaphore, namespace: &Arc<str>) -> Self {
        let worker = Self::new(workers, namespace);
        worker.start().await;
        worker
    }

    /// Frees the worker for other reconciles while this one waits, so that TrainJobs can be suspended however many others wait for plugins.
    pub(crate) async fn free_while<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        if let Some(result) = wait.as_mut().now_or_never() {
            return result;
        }
        self.hold(None);
        let result = wait.await;
        self.start().await;
        result
    }

    /// The same for a wait that is rarely slow: frees the worker after a second.
    pub(crate) async fn free_if_slow<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        match timeout(SOON, wait.as_mut()).await {
            Ok(result) => result,
            Err(_) => self.free_while(wait).await,
        }
    }

    fn hold(&self, permit: Option<Permit>) {
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::num::NonZeroUsize;

    use tokio::sync::oneshot;

    use super::*;

    fn one() -> (FairSemaphore, Arc<str>) {
        (FairSemaphore::new(1, NonZeroUsize::MAX), "team".into())
    }

    #[tokio::test]
    async fn a_reconcile_that_waits_frees_its_worker_and_gets_one_back() {
        let (workers, team) = one();
        let first = Worker::of(&workers, &team).await;
        assert!(Worker::of(&workers, &team).now_or_never().is_none());
        let (end, wait) = oneshot::channel::<()>();
        {
            let waits = first.free_while(wait);
            tokio::pin!(waits);
            assert!(waits.as_mut().now_or_never().is_none());
            let second = Worker::of(&workers, &team).now_or_never().unwrap();
            end.send(()).unwrap();
            // The second one works: the first has to wait for it.
            assert!(waits.as_mut().now_or_never().is_none());
            drop(second);
            waits.await.unwrap();
        }
        assert!(Worker::of(&workers, &team).now_or_never().is_none());
        drop(first);
        Worker::of(&workers, &team).now_or_never().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_is_free_once_a_wait_is_slow() {
        let (workers, team) = one();
        let worker = Worker::of(&workers, &team).await;
        worker.free_if_slow(std::future::ready(())).await;
        let waits = worker.free_if_slow(std::future::pending::<()>());
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(Worker::of(&workers, &team).now_or_never().is_none());
        tokio::time::advance(SOON).await;
        assert!(waits.as_mut().now_or_never().is_none());
        Worker::of(&workers, &team).now_or_never().unwrap();
    }

    #[tokio::test]
    async fn a_wait_that_is_canceled_leaves_every_worker_free() {
        let (workers, team) = one();
        let worker = Worker::of(&workers, &team).await;
        let waits = worker.free_while(std::future::pending::<()>());
        assert!(waits.now_or_never().is_none());
        drop(worker);
        let free = Worker::of(&workers, &team).now_or_never().unwrap();
        assert!(Worker::of(&workers, &team).now_or_never().is_none());
        drop(free);
    }
}

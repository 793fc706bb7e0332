//! How many TrainJobs are worked on at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// What takes longer is slow.
const SOON: Duration = Duration::from_secs(1);

/// The workers. Each reconcile has one, except while it waits for a thread.
#[derive(Debug, Clone)]
pub(crate) struct Workers(Arc<Semaphore>);

impl Workers {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.max(1))))
    }

    /// Waits for a free worker.
    pub(crate) async fn free(&self) -> Worker {
        let permit = self.0.clone().acquire_owned().await.ok();
        Worker {
            workers: self.clone(),
            permit: Mutex::new(permit),
        }
    }
}

/// The worker of one reconcile. It is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    workers: Workers,
    /// None while the reconcile waits for a thread.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Worker {
    /// Lets another reconcile have the worker for as long as this one only waits: those that wait for plugins, however
    /// many they are, keep nobody from being suspended.
    pub(crate) async fn lend_while<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut permit = self.permit.lock().await;
        drop(permit.take());
        let result = wait.await;
        *permit = self.workers.0.clone().acquire_owned().await.ok();
        result
    }

    /// The same for what hardly ever takes long: the worker is lent after a second.
    pub(crate) async fn lend_if_slow<T>(&self, wait: impl Future<Output = T>) -> T {
        tokio::pin!(wait);
        match timeout(SOON, wait.as_mut()).await {
            Ok(result) => result,
            Err(_) => self.lend_while(wait).await,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_reconcile_that_waits_lends_its_worker_and_gets_one_back() {
        let workers = Workers::new(1);
        let first = workers.free().await;
        assert!(workers.free().now_or_never().is_none());
        let (end, wait) = oneshot::channel::<()>();
        {
            let waits = first.lend_while(wait);
            tokio::pin!(waits);
            assert!(waits.as_mut().now_or_never().is_none());
            let second = workers.free().now_or_never().unwrap();
            end.send(()).unwrap();
            // The second one works: the first has to wait for it.
            assert!(waits.as_mut().now_or_never().is_none());
            drop(second);
            waits.await.unwrap();
        }
        assert!(workers.free().now_or_never().is_none());
        drop(first);
        workers.free().now_or_never().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_is_lent_once_a_wait_is_slow() {
        let workers = Workers::new(1);
        let worker = workers.free().await;
        worker.lend_if_slow(std::future::ready(())).await;
        let waits = worker.lend_if_slow(std::future::pending::<()>());
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(workers.free().now_or_never().is_none());
        tokio::time::advance(SOON).await;
        assert!(waits.as_mut().now_or_never().is_none());
        workers.free().now_or_never().unwrap();
    }

    #[tokio::test]
    async fn a_wait_that_is_canceled_leaves_every_worker_free() {
        let workers = Workers::new(1);
        let worker = workers.free().await;
        let waits = worker.lend_while(std::future::pending::<()>());
        assert!(waits.now_or_never().is_none());
        drop(worker);
        let free = workers.free().now_or_never().unwrap();
        assert!(workers.free().now_or_never().is_none());
        drop(free);
    }
}

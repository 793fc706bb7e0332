//! Limits on how many TrainJobs are reconciled at once.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// A wait that takes longer is slow.
const SOON: Duration = Duration::from_secs(1);

/// A budget of memory for large TrainJobs. Small ones do not count against it.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    free: Arc<Semaphore>,
    /// Larger sizes count against the budget.
    small: usize,
    /// The number of parts of the budget.
    parts: u32,
    /// The size of a part.
    part: usize,
}

impl MemoryBudget {
    /// The budget for the texts of TrainJobs, in bytes. A TrainJob takes dozens of times as much memory while it is rendered.
    pub(crate) fn of_texts() -> Self {
        Self::new(64 << 10, 4 << 10, 1 << 10)
    }

    /// The budget for large runtimes, in JSON values: each takes about 500 bytes until the JobSet is applied, however short the value is. A
    /// TrainJob waits for this budget only after it has its part of the one for texts, and waits for each only once, so that there is no
    /// deadlock.
    pub(crate) fn of_runtimes() -> Self {
        Self::new(16 << 10, 512, 1 << 10)
    }

    fn new(small: usize, parts: u32, part: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(parts as usize)),
            small,
            parts,
            part,
        }
    }

    /// Whether this size counts against the budget.
    pub(crate) const fn counts(&self, size: usize) -> bool {
        size > self.small
    }

    /// Waits until the budget has room for this size. Other reconciles can use the worker in the meantime.
    pub(crate) async fn reserve(
        &self,
        size: usize,
        worker: &Worker,
    ) -> Option<OwnedSemaphorePermit> {
        if !self.counts(size) {
            return None;
        }
        let parts = u32::try_from(size / self.part).unwrap_or(self.parts);
        let (free, parts) = (self.free.clone(), parts.min(self.parts));
        if let Ok(permit) = free.clone().try_acquire_many_owned(parts) {
            return Some(permit);
        }
        worker.lend_while(free.acquire_many_owned(parts)).await.ok()
    }
}

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

/// The worker of one reconcile. It becomes free when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    workers: Workers,
    /// `None` while the reconcile waits for a thread.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Worker {
    /// Frees the worker for other reconciles while this one only waits, so that TrainJobs can be suspended however many others wait for
    /// plugins.
    pub(crate) async fn lend_while<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut permit = self.permit.lock().await;
        drop(permit.take());
        let result = wait.await;
        *permit = self.workers.0.clone().acquire_owned().await.ok();
        result
    }

    /// The same for a wait that is rarely slow: frees the worker after a second.
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

    #[tokio::test]
    async fn large_train_jobs_share_a_budget_and_delay_no_small_ones() {
        let (workers, budget) = (Workers::new(1), MemoryBudget::of_texts());
        let worker = workers.free().await;
        let large = 1 << 20;
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(budget.reserve(large, &worker).await.unwrap());
        }
        let waits = budget.reserve(large, &worker);
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        // It has lent its worker, and a small one needs no room.
        let other = workers.free().now_or_never().unwrap();
        assert!(budget.reserve(64 << 10, &other).await.is_none());
        drop((other, held.pop()));
        assert!(waits.await.is_some());
        // One that is larger than all of it waits until it is alone.
        drop(held);
        assert!(budget.reserve(1 << 30, &worker).await.is_some());
    }

    #[tokio::test]
    async fn large_runtimes_share_a_budget_and_delay_no_small_ones() {
        let (workers, budget) = (Workers::new(1), MemoryBudget::of_runtimes());
        let worker = workers.free().await;
        let held = [
            budget.reserve(230_000, &worker).await.unwrap(),
            budget.reserve(230_000, &worker).await.unwrap(),
        ];
        let waits = budget.reserve(230_000, &worker);
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        let other = workers.free().now_or_never().unwrap();
        assert!(budget.reserve(10_000, &other).await.is_none());
        drop((other, held));
        assert!(waits.await.is_some());
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

//! The memory of large TrainJobs and runtimes.

use std::{num::NonZeroUsize, sync::Arc};

use super::semaphore::{FairSemaphore, Permit};

/// A budget of memory for large TrainJobs. Small ones do not count against it. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    free: FairSemaphore,
    /// Larger sizes count against the budget.
    small: usize,
}

impl MemoryBudget {
    /// The budget for the texts of TrainJobs, in bytes. A TrainJob takes dozens of times as much memory while it is rendered.
    pub(crate) fn of_texts() -> Self {
        Self::new(64 << 10, 4 << 20)
    }

    /// The budget for large runtimes, in JSON values: each takes about 500 bytes until the JobSet is applied, however short the value is. A
    /// TrainJob waits for this budget only after it has its part of the one for texts, and waits for each only once, so that there is no
    /// deadlock.
    pub(crate) fn of_runtimes() -> Self {
        Self::new(16 << 10, 512 << 10)
    }

    fn new(small: usize, all: usize) -> Self {
        Self {
            free: FairSemaphore::new(all, NonZeroUsize::MAX),
            small,
        }
    }

    /// Whether this size counts against the budget.
    pub(crate) const fn counts(&self, size: usize) -> bool {
        size > self.small
    }

    /// Waits until the budget has room for this size; `None` if it does not count.
    pub(crate) async fn reserve(&self, namespace: &Arc<str>, size: usize) -> Option<Permit> {
        if !self.counts(size) {
            return None;
        }
        Some(self.free.acquire(namespace, size).await)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt as _;

    use super::*;
    use crate::fair::Worker;

    #[tokio::test]
    async fn large_train_jobs_share_a_budget_and_delay_no_small_ones() {
        let (workers, budget) = (
            FairSemaphore::new(1, NonZeroUsize::MAX),
            MemoryBudget::of_texts(),
        );
        let team = Arc::from("team");
        let worker = Worker::of(&workers, &team).await;
        let large = 1 << 20;
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(budget.reserve(&team, large).await.unwrap());
        }
        let waits = worker.free_while(budget.reserve(&team, large));
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        // Its worker is free, and a small one needs no room.
        let other = Worker::of(&workers, &team).now_or_never().unwrap();
        assert!(budget.reserve(&team, 64 << 10).await.is_none());
        drop((other, held.pop()));
        assert!(waits.await.is_some());
        // One that is larger than all of it waits until it is alone.
        drop(held);
        assert!(budget.reserve(&team, 1 << 30).await.is_some());
    }

    #[tokio::test]
    async fn large_runtimes_share_a_budget_and_delay_no_small_ones() {
        let (workers, budget) = (
            FairSemaphore::new(1, NonZeroUsize::MAX),
            MemoryBudget::of_runtimes(),
        );
        let team = Arc::from("team");
        let worker = Worker::of(&workers, &team).await;
        let held = [
            budget.reserve(&team, 230_000).await.unwrap(),
            budget.reserve(&team, 230_000).await.unwrap(),
        ];
        let waits = worker.free_while(budget.reserve(&team, 230_000));
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        let other = Worker::of(&workers, &team).now_or_never().unwrap();
        assert!(budget.reserve(&team, 10_000).await.is_none());
        drop((other, held));
        assert!(waits.await.is_some());
    }
}

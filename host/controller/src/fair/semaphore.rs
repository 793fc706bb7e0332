//! A semaphore that is fair to namespaces.

use std::{
    future::pending,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::round_robin::RoundRobin;

/// A semaphore whose permits namespaces acquire in turns. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct FairSemaphore {
    permits: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: RoundRobin<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    permits: usize,
    acquired: oneshot::Sender<Permit>,
}

/// The permits of one acquisition. They are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    semaphore: FairSemaphore,
    namespace: Arc<str>,
    permits: usize,
}

impl FairSemaphore {
    /// Returns a semaphore with that many permits, of which each namespace may have `share` acquisitions at once.
    pub(crate) fn new(permits: usize, share: NonZeroUsize) -> Self {
        let state = State {
            free: permits,
            waiting: RoundRobin::new(share),
        };
        Self {
            permits,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits until it is the namespace's turn and that many permits are free, or all of them if there are fewer. Others are not served
    /// first if they need less, so that those that need much are not delayed forever.
    pub(crate) async fn acquire(&self, namespace: &Arc<str>, permits: usize) -> Permit {
        // Before the channel, so that the waiter is closed when this is dropped.
        let leaves = LeavesLine {
            semaphore: self,
            namespace,
        };
        let (acquired, wait) = oneshot::channel();
        let waiter = Waiter {
            permits: permits.min(self.permits),
            acquired,
        };
        self.state().waiting.push(namespace, waiter);
        self.serve();
        let Ok(permit) = wait.await else {
            // Only a waiter that was canceled is removed without a permit.
            return pending().await;
        };
        std::mem::forget(leaves);
        permit
    }

    /// Serves waiters as long as permits are free.
    fn serve(&self) {
        loop {
            let mut state = self.state();
            let free = state.free;
            let fits = |waiter: &Waiter| waiter.permits <= free;
            let Some((namespace, waiter)) = state.waiting.take_if(fits) else {
                return;
            };
            state.free -= waiter.permits;
            drop(state);
            let permit = Permit {
                semaphore: self.clone(),
                namespace,
                permits: waiter.permits,
            };
            // If the waiter is being canceled, the permit is dropped, and so free again.
            let _canceled = waiter.acquired.send(permit);
        }
    }

    /// Returns how many acquisitions wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiter that is canceled leaves the line when this is dropped. Otherwise it would take its namespace's turn, and those behind it would wait
/// until as much is free as it needed.
struct LeavesLine<'a> {
    semaphore: &'a FairSemaphore,
    namespace: &'a Arc<str>,
}

impl Drop for LeavesLine<'_> {
    fn drop(&mut self) {
        let is_kept = |waiter: &Waiter| !waiter.acquired.is_closed();
        let mut state = self.semaphore.state();
        state.waiting.retain(self.namespace, is_kept);
        drop(state);
        self.semaphore.serve();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.semaphore.state();
        state.free += self.permits;
        state.waiting.done(&self.namespace);
        drop(state);
        self.semaphore.serve();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    fn semaphore(permits: usize, share: usize) -> FairSemaphore {
        FairSemaphore::new(
            permits,
            NonZeroUsize::new(share).unwrap_or(NonZeroUsize::MAX),
        )
    }

    #[tokio::test]
    async fn lists_take_turns_by_namespace_and_few_are_read_at_once() {
        let lists = semaphore(2, 1);
        let [a, b, c] = ["a", "b", "c"].map(Arc::<str>::from);
        let of_a = lists.acquire(&a, 1).await;
        assert!(lists.acquire(&a, 1).now_or_never().is_none());
        let of_b = lists.acquire(&b, 1).await;
        assert!(lists.acquire(&c, 1).now_or_never().is_none());
        drop(of_a);
        let of_c = lists.acquire(&c, 1).await;
        drop((of_b, of_c));
        let state = lists.state();
        assert_eq!((state.free, state.waiting.len()), (2, 0));
    }

    #[tokio::test]
    async fn a_namespace_with_many_waiters_delays_another_by_one() {
        let semaphore = semaphore(1, 0);
        let [busy, quiet] = ["busy", "quiet"].map(Arc::<str>::from);
        let first = semaphore.acquire(&busy, 1).await;
        let mut waiters: Vec<_> = (0..5_000)
            .map(|_| Box::pin(semaphore.acquire(&busy, 1)))
            .collect();
        for waiter in &mut waiters {
            assert!(waiter.now_or_never().is_none());
        }
        let mut last = pin!(semaphore.acquire(&quiet, 1));
        assert!(last.as_mut().now_or_never().is_none());
        drop(first);
        let served = waiters
            .iter_mut()
            .filter_map(|waiter| waiter.now_or_never());
        let served: Vec<_> = served.collect();
        assert_eq!(served.len(), 1);
        drop(served);
        assert!(last.now_or_never().is_some());
    }

    #[tokio::test]
    async fn small_acquisitions_do_not_delay_a_large_one_forever() {
        let semaphore = semaphore(10, 0);
        let team = Arc::from("team");
        let held = semaphore.acquire(&team, 4).await;
        let mut large = pin!(semaphore.acquire(&team, 100));
        assert!(large.as_mut().now_or_never().is_none());
        let mut small = pin!(semaphore.acquire(&team, 1));
        assert!(small.as_mut().now_or_never().is_none());
        drop(held);
        let large = large.now_or_never();
        assert!(large.is_some() && small.as_mut().now_or_never().is_none());
        drop(large);
        assert!(small.now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiters_that_are_canceled_delay_no_others() {
        let all = semaphore(10, 0);
        let team = Arc::from("team");
        let _held = all.acquire(&team, 4).await;
        let mut large = Box::pin(all.acquire(&team, 100));
        assert!(large.as_mut().now_or_never().is_none());
        let mut small = pin!(all.acquire(&team, 1));
        assert!(small.as_mut().now_or_never().is_none());
        drop(large);
        assert!(small.now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiters_that_are_canceled_take_no_turn() {
        let one = semaphore(1, 0);
        let [busy, quiet] = ["busy", "quiet"].map(Arc::<str>::from);
        let held = one.acquire(&busy, 1).await;
        let mut canceled: Vec<_> = (0..10).map(|_| Box::pin(one.acquire(&quiet, 1))).collect();
        let mut waiters: Vec<_> = (0..10).map(|_| Box::pin(one.acquire(&busy, 1))).collect();
        let mut last = pin!(one.acquire(&quiet, 1));
        for waiter in canceled.iter_mut().chain(&mut waiters) {
            assert!(waiter.now_or_never().is_none());
        }
        assert!(last.as_mut().now_or_never().is_none());
        drop(canceled);
        assert_eq!(one.state().waiting.len(), 11);
        drop(held);
        // At most one of the other namespace is first.
        let mut permits = waiters.iter_mut().filter_map(|it| it.now_or_never());
        drop(permits.next());
        drop(permits);
        assert!(last.now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiters_that_are_canceled_take_no_permit() {
        let semaphore = semaphore(1, 1);
        let [a, b] = ["a", "b"].map(Arc::<str>::from);
        let held = semaphore.acquire(&a, 1).await;
        for namespace in [&a, &b] {
            for _ in 0..10_000 {
                assert!(semaphore.acquire(namespace, 1).now_or_never().is_none());
            }
        }
        // One that is canceled after it was served.
        let mut served = Box::pin(semaphore.acquire(&b, 1));
        assert!(served.as_mut().now_or_never().is_none());
        drop(held);
        drop(served);
        let again = semaphore.acquire(&a, 1).now_or_never();
        assert!(again.is_some());
        drop(again);
        let state = semaphore.state();
        assert_eq!(
            (state.free, state.waiting.len(), state.waiting.in_progress()),
            (1, 0, 0)
        );
    }
}

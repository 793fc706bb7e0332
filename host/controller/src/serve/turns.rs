//! A rate of calls that namespaces or clients share in turns.

use std::{num::NonZeroUsize, sync::Arc};

use governor::DefaultDirectRateLimiter;

use crate::{client::Rate, fair::FairSemaphore};

/// A rate of calls. Those who wait take turns, so that one with many requests delays the others by one turn each.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Whoever holds its only permit is the next.
    next: FairSemaphore,
    limiter: Option<DefaultDirectRateLimiter>,
}

impl Turns {
    /// Returns turns with that rate; `None` means no limit.
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self {
            next: FairSemaphore::new(1, NonZeroUsize::MAX),
            limiter: rate.map(|rate| DefaultDirectRateLimiter::direct(rate.quota())),
        }
    }

    /// Waits until it is the turn of this namespace or client, and the rate allows a call.
    pub(crate) async fn take(&self, of: &Arc<str>) {
        let Some(limiter) = &self.limiter else {
            return;
        };
        let _next = self.next.acquire(of, 1).await;
        limiter.until_ready().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    /// A client with a thousand requests delays another one by a single turn.
    #[tokio::test]
    async fn clients_take_turns() {
        let turns = Turns::new(Rate::new(1e-3, 2));
        let [greedy, quiet] = ["greedy", "quiet"].map(Arc::<str>::from);
        assert!(turns.take(&greedy).now_or_never().is_some());
        // It holds the turn until the rate allows a call, and the others of it wait behind it.
        let mut many = Box::pin(join_all((0..1_000).map(|_| turns.take(&greedy))));
        assert!(many.as_mut().now_or_never().is_none());
        let mut other = Box::pin(turns.take(&quiet));
        assert!(other.as_mut().now_or_never().is_none());
        // One is written at once, and the next waits for the rate.
        assert_eq!(turns.next.waiting(), 998 + 1);
        drop(many);
        // Those that gave up have left the line, so the other one is next.
        assert_eq!(turns.next.waiting(), 0);
    }

    #[tokio::test]
    async fn without_a_rate_nobody_waits() {
        let turns = Turns::new(None);
        let one = Arc::from("one");
        for _ in 0..100 {
            assert!(turns.take(&one).now_or_never().is_some());
        }
    }
}

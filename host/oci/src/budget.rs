//! How much may still be read of what others wrote.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::progress::{Progress, Step};

/// What each request costs beside the bytes of its answer, so that a flood of tiny or missing manifests has an end, too.
const REQUEST: u64 = 4 << 10;

/// Bytes that may still be read. What is counted was read, and not only declared. Clones share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicU64>);

impl Budget {
    pub(crate) fn of(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Returns how many bytes are left.
    pub(crate) fn rest(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a request. What is read of its answer is counted by the progress.
    pub(crate) fn request(&self) -> Progress {
        self.spend(REQUEST);
        let budget = self.clone();
        Progress::new(move |step| {
            if let Step::Advance(bytes) = step {
                budget.spend(bytes);
            }
        })
    }

    fn spend(&self, bytes: u64) {
        let spent = |rest: u64| Some(rest.saturating_sub(bytes));
        // It never fails, because a number is always returned.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
    }
}

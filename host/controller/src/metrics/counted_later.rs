//! A count that is made when metrics are read.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

type Count<T> = Box<dyn Fn() -> T + Send + Sync>;

/// Counts once it knows how.
#[derive(Clone, Default)]
pub(super) struct CountedLater<T>(Arc<OnceLock<Count<T>>>);

impl<T> CountedLater<T> {
    /// Sets how to count. Call it once.
    pub(super) fn count_with(&self, count: impl Fn() -> T + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(count));
    }

    /// Returns the count; `None` if it does not know how.
    pub(super) fn count(&self) -> Option<T> {
        self.0.get().map(|count| count())
    }
}

impl<T> fmt::Debug for CountedLater<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedLater").finish_non_exhaustive()
    }
}

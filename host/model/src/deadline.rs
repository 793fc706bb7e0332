//! A deadline for work that cannot be interrupted: the work checks it between its steps.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use thiserror::Error;

/// The time that has passed since the work began.
type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The time by which work has to end.
#[derive(Clone, Default)]
pub struct Deadline(Option<(Duration, Elapsed)>);

/// Work took longer than its deadline. The same work may succeed on a machine that is less busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("did not end within {} ms", .limit.as_millis())]
pub struct Overdue {
    /// The time limit.
    pub limit: Duration,
}

impl Deadline {
    /// Returns no deadline.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns a deadline for work that begins now.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        let start = Instant::now();
        Self::by_clock(limit, move || start.elapsed())
    }

    /// Returns a deadline by another clock.
    #[must_use]
    pub fn by_clock(
        limit: Duration,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self(Some((limit, Arc::new(elapsed))))
    }

    /// Checks whether the time limit is exceeded.
    ///
    /// # Errors
    /// The work has taken too long.
    pub fn check(&self) -> Result<(), Overdue> {
        match &self.0 {
            Some((limit, elapsed)) if elapsed() > *limit => Err(Overdue { limit: *limit }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.0.as_ref().map(|(limit, _)| limit);
        f.debug_tuple("Deadline").field(&limit).finish()
    }
}

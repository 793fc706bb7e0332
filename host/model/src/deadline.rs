//! How long work may take that nobody can interrupt: it asks by itself, between its steps.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use thiserror::Error;

/// The time that has passed since the work began.
type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The time that work may take. The work checks it between its steps.
#[derive(Clone, Default)]
pub struct Deadline(Option<(Duration, Elapsed)>);

/// Work that takes longer than it may. The same work may be done in time on a machine that is less busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("did not end within {} ms", .limit.as_millis())]
pub struct Overdue {
    /// How long it may take.
    pub limit: Duration,
}

impl Deadline {
    /// Work that may take as long as it does.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Work that begins now and may take so long.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        let start = Instant::now();
        Self::by_clock(limit, move || start.elapsed())
    }

    /// The same by another clock.
    #[must_use]
    pub fn by_clock(
        limit: Duration,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self(Some((limit, Arc::new(elapsed))))
    }

    /// Asks whether the work may go on.
    ///
    /// # Errors
    /// It has taken too long.
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

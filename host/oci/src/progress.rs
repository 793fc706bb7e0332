//! How far a transfer is.

use std::{fmt, sync::Arc};

/// A step of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many bytes will be transferred in addition.
    Expect(u64),
    /// So many further bytes were sent or received.
    Advance(u64),
}

/// Gets the steps of a transfer.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Progress {
    /// Ignores all steps.
    pub const NONE: Self = Self(None);

    /// Returns a progress that calls a function for each step.
    #[must_use]
    pub fn new(step: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(step)))
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.step(Step::Expect(bytes));
    }

    pub(crate) fn advance(&self, bytes: usize) {
        self.step(Step::Advance(bytes as u64));
    }

    fn step(&self, step: Step) {
        if let Some(of) = &self.0 {
            of(step);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

//! The time by which certificates are valid.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;

/// The longest sleep. A clock that was set, or a machine that was suspended, is noticed after it.
const LONGEST: Duration = Duration::from_secs(600);

/// A clock. Tests have one that they set, because certificates last for years.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> SystemTime;

    /// Waits until a time, or less.
    fn sleep_until(&self, time: SystemTime) -> BoxFuture<'static, ()>;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, time: SystemTime) -> BoxFuture<'static, ()> {
        let left = time.duration_since(self.now()).unwrap_or_default();
        Box::pin(tokio::time::sleep(left.min(LONGEST)))
    }
}

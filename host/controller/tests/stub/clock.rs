//! A clock that a test sets.

use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use rustls::{pki_types::UnixTime, time_provider::TimeProvider};
use tokio::sync::watch;
use trainyard_controller::certificate::Clock;

/// A time that only [`TestClock::advance`] changes. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct TestClock(watch::Sender<SystemTime>);

impl TestClock {
    /// Starts at the first day of December 2026.
    pub(crate) fn new() -> Self {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_083_200);
        Self(watch::Sender::new(time))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.send_modify(|time| *time += by);
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        *self.0.borrow()
    }

    fn sleep_until(&self, time: SystemTime) -> BoxFuture<'static, ()> {
        let mut now = self.0.subscribe();
        Box::pin(async move {
            let _ = now.wait_for(|now| *now >= time).await;
        })
    }
}

/// The clock of tokio, which tests pause.
#[derive(Debug)]
pub(crate) struct PausedClock {
    start: tokio::time::Instant,
    at_start: SystemTime,
}

impl PausedClock {
    pub(crate) fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
            at_start: SystemTime::now(),
        }
    }
}

impl Clock for PausedClock {
    fn now(&self) -> SystemTime {
        self.at_start + self.start.elapsed()
    }

    fn sleep_until(&self, time: SystemTime) -> BoxFuture<'static, ()> {
        let left = time.duration_since(self.now()).unwrap_or_default();
        Box::pin(tokio::time::sleep(left))
    }
}

impl TimeProvider for TestClock {
    fn current_time(&self) -> Option<UnixTime> {
        let since = self.now().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(UnixTime::since_unix_epoch)
    }
}

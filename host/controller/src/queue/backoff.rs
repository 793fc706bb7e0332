//! The backoff of TrainJobs whose reconciles fail.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// The exponential backoff, with jitter, of a key that fails.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The shortest delay, after the first failure.
    pub first: Duration,
    /// The longest delay, including jitter.
    pub most: Duration,
    /// The longest delay during an outage of the API server.
    pub most_in_outage: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(300),
            most_in_outage: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    pub(super) fn start(self, now: Instant) -> Delays {
        let up_to = |most: Duration| {
            // The jitter is at most the delay itself.
            ExponentialBuilder::new()
                .with_min_delay(self.first.min(most / 2))
                .with_max_delay(most / 2)
                .with_factor(2.0)
                .without_max_times()
                .with_jitter()
                .build()
        };
        Delays {
            own: up_to(self.most),
            outage: up_to(self.most_in_outage),
            since: now,
            last: now,
        }
    }
}

/// The delays of a key that fails. Both grow with every failure.
#[derive(Debug)]
pub(super) struct Delays {
    pub(super) own: ExponentialBackoff,
    pub(super) outage: ExponentialBackoff,
    /// When the first failure in a row happened, and when the last one did.
    pub(super) since: Instant,
    pub(super) last: Instant,
}

/// How long a key has been failing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failing {
    /// Up to now.
    pub now: Duration,
    /// Up to the previous failure.
    pub before: Duration,
}

impl Failing {
    /// Returns true once in each period while the key keeps failing.
    #[must_use]
    pub fn passes(self, period: Duration) -> bool {
        let periods = |time: Duration| time.as_nanos() / period.as_nanos().max(1);
        periods(self.now) > periods(self.before)
    }
}

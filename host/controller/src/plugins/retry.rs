//! The pauses before something is tried again.

use std::time::Duration;

/// The first and the longest pause.
pub(super) const FIRST_RETRY: Duration = Duration::from_secs(1);
pub(super) const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// Returns the pause after that many failures.
pub(super) fn backoff(failed: u32) -> Duration {
    FIRST_RETRY
        .saturating_mul(1 << failed.min(10))
        .min(LONGEST_RETRY)
}

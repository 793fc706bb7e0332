//! Waits until a condition holds, up to a timeout.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The timeout for every condition. It is far longer than needed, because the machine can be busy. No test measures time.
pub(crate) const WITHIN: Duration = Duration::from_secs(180);
/// The pause between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Repeats an attempt until it returns a value.
///
/// # Errors
/// The first error of an attempt, or the timeout, with a description of the condition.
pub async fn eventually<T>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + WITHIN;
    loop {
        if let Some(found) = attempt().await? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!(
                "timed out after {} s waiting until {what}",
                WITHIN.as_secs()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

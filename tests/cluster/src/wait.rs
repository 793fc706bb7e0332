//! Waits until a condition holds, up to a timeout.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long anything may take until it is seen. Far more than it does: a machine may be busy, and no test measures time.
pub(crate) const WITHIN: Duration = Duration::from_secs(180);
/// How long it is not looked at in between.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Asks again and again until there is an answer.
///
/// # Errors
/// The first error of an attempt; or no answer in three minutes, with what was waited for.
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
            bail!("not seen after {} s: {what}", WITHIN.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

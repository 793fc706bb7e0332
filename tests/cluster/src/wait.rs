//! Waits until a condition holds, up to a timeout.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http::StatusCode;
use serde_json::Value;

use crate::api::Api;

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

impl Api<'_> {
    /// Waits until there is an object of that name of which this holds, and returns it.
    ///
    /// # Errors
    /// The server refused to show it, or it did not come about in three minutes: with the object as it was last.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let answer = self.get(name).await?;
            let last = if answer.status == StatusCode::NOT_FOUND {
                Value::Null
            } else {
                let object = answer.accepted()?;
                if holds(&object) {
                    return Ok(object);
                }
                object
            };
            if Instant::now() > deadline {
                bail!(
                    "not seen of {name} after {} s: {what}; it is {last:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until this holds of all objects together, and returns them.
    ///
    /// # Errors
    /// The server refused to show them, or it did not come about in three minutes: with the objects as they were last.
    pub async fn until_all(
        &self,
        what: &str,
        hold: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let items = self.items().await?;
            if hold(&items) {
                return Ok(items);
            }
            if Instant::now() > deadline {
                let items = Value::Array(items);
                bail!(
                    "not seen after {} s: {what}; there is {items:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

//! The reference, which measures its own time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use trainyard_cluster::{Oracle, RunningOracle, go_is_installed};

/// The running program of `tests/reference/oracle`.
pub struct Reference(RunningOracle);

impl Reference {
    /// Builds and starts it; `None` if Go is not installed.
    ///
    /// # Errors
    /// It does not build or start.
    pub fn start() -> Result<Option<Self>> {
        if !go_is_installed() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let running = Oracle::build(folder.path())?.start()?;
        Ok(Some(Self(running)))
    }

    /// Builds and encodes the objects of the only TrainJob of an input this number of times, and returns the time. What it includes is
    /// documented in `tests/reference/oracle/time.go`.
    ///
    /// # Errors
    /// The reference exited.
    pub fn time(&mut self, input: &str, times: u64) -> Result<Duration> {
        let measured = self.0.ask(&json!({"yaml": input, "times": times}))?;
        let nanoseconds = measured.get("nanoseconds").and_then(Value::as_u64);
        let nanoseconds = nanoseconds.context("the reference did not measure")?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

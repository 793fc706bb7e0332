//! The share of the log that each namespace has.
//!
//! A namespace with thousands of failing TrainJobs would otherwise fill the log, which is rotated by size, and so remove the lines of others.
//! What is left out is in the Events of the TrainJobs.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
};

use governor::Quota;

use crate::keyed_limit::{KeyedLimit, REMEMBERED};

/// How many lines of a namespace may follow each other, and how many more there may be in a second.
const BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(199);
const PER_SECOND: NonZeroU32 = NonZeroU32::MIN;

/// The shares of all namespaces.
#[derive(Debug)]
pub(crate) struct LogShares {
    limits: KeyedLimit,
    /// How many lines of a namespace were left out since its last line.
    left_out: Mutex<HashMap<Arc<str>, u64>>,
}

/// A line that may be written.
#[derive(Debug)]
pub(crate) struct AllowedLine {
    /// How many lines about the same namespace were left out before it, if any. The line says so.
    pub(crate) left_out: Option<u64>,
}

impl Default for LogShares {
    fn default() -> Self {
        let quota = Quota::per_second(PER_SECOND).allow_burst(BURST);
        Self {
            limits: KeyedLimit::new(quota),
            left_out: Mutex::default(),
        }
    }
}

impl LogShares {
    /// Allows a line about an object in the namespace; `None` if the namespace has used up its share.
    pub(crate) fn allow(&self, namespace: &str) -> Option<AllowedLine> {
        let namespace: Arc<str> = namespace.into();
        let is_allowed = self.limits.allows(&namespace);
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if is_allowed {
            let left_out = left_out.remove(&namespace);
            return Some(AllowedLine { left_out });
        }
        if left_out.len() < REMEMBERED || left_out.contains_key(&namespace) {
            *left_out.entry(namespace).or_default() += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_namespace_does_not_use_the_share_of_another() {
        let shares = LogShares::default();
        let lines = (0..3_000).filter(|_| shares.allow("busy").is_some());
        // A slow machine may take some seconds.
        let lines = lines.count();
        assert!((200..1_000).contains(&lines), "{lines}");
        let quiet = shares.allow("quiet").map(|line| line.left_out);
        assert_eq!(quiet, Some(None));
    }
}

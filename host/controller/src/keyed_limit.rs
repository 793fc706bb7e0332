//! A rate limit for each of many keys, such as namespaces.

use std::sync::Arc;

use governor::{DefaultKeyedRateLimiter, Quota};

/// The most keys that are remembered before those that have not reached their limit are forgotten.
pub(crate) const REMEMBERED: usize = 4_096;

/// A limit that each key has on its own.
#[derive(Debug)]
pub(crate) struct KeyedLimit(DefaultKeyedRateLimiter<Arc<str>>);

impl KeyedLimit {
    /// Returns the limit of this quota.
    pub(crate) fn new(quota: Quota) -> Self {
        Self(DefaultKeyedRateLimiter::hashmap(quota))
    }

    /// Whether the key has not reached its limit; if so, this use counts.
    pub(crate) fn allows(&self, key: &Arc<str>) -> bool {
        if self.0.len() > REMEMBERED {
            self.0.retain_recent();
        }
        self.0.check_key(key).is_ok()
    }
}

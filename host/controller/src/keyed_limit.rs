//! A rate limit for each of many keys, such as namespaces.

use std::sync::{Arc, Mutex, PoisonError};

use governor::{DefaultKeyedRateLimiter, Quota};

/// The most keys that are remembered.
pub(crate) const REMEMBERED: usize = 4_096;

/// A limit that each key has on its own.
#[derive(Debug)]
pub(crate) struct KeyedLimit {
    quota: Quota,
    limits: Mutex<DefaultKeyedRateLimiter<Arc<str>>>,
}

impl KeyedLimit {
    /// Returns the limit of this quota.
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quota,
            limits: Mutex::new(DefaultKeyedRateLimiter::hashmap(quota)),
        }
    }

    /// Whether the key has not reached its limit; if so, this use counts.
    pub(crate) fn allows(&self, key: &Arc<str>) -> bool {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if limits.len() >= REMEMBERED {
            limits.retain_recent();
        }
        // All of them were used recently. Then all start anew, because keys that are forgotten one by one would be searched for at each use.
        if limits.len() >= REMEMBERED {
            *limits = DefaultKeyedRateLimiter::hashmap(self.quota);
        }
        limits.check_key(key).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn each_key_has_a_limit_and_the_number_of_keys_is_bounded() {
        let limit = KeyedLimit::new(Quota::per_hour(NonZeroU32::MIN));
        let busy = Arc::from("busy");
        assert!(limit.allows(&busy) && !limit.allows(&busy));
        for n in 0..2 * REMEMBERED {
            assert!(limit.allows(&Arc::from(n.to_string())));
        }
        let limits = limit.limits.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(limits.len() <= REMEMBERED, "{}", limits.len());
    }
}

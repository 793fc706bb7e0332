//! A rate limit for each of many keys, such as namespaces.

use std::sync::{Arc, Mutex, PoisonError};

use governor::{
    Quota, RateLimiter, clock::Clock, middleware::NoOpMiddleware, nanos::Nanos,
    state::keyed::HashMapStateStore,
};
use tokio::time::Instant;

/// The most keys that are remembered.
pub(crate) const REMEMBERED: usize = 4_096;

/// The least keys of which old ones are looked for, so that this costs little for each key.
const FEW: usize = 64;

/// Returns how many keys there may be, if `remembered` are left now, until old ones are looked for again. What is remembered follows what is
/// used, instead of growing to the most.
pub(crate) fn next_search(remembered: usize) -> usize {
    remembered.saturating_mul(2).clamp(FEW, REMEMBERED)
}

/// A limit that each key has on its own.
#[derive(Debug)]
pub(crate) struct KeyedLimit {
    quota: Quota,
    limits: Mutex<Limits>,
}

type OfKeys = RateLimiter<Arc<str>, HashMapStateStore<Arc<str>>, TokioClock, NoOpMiddleware<Nanos>>;

#[derive(Debug)]
struct Limits {
    of_keys: OfKeys,
    search_at: usize,
}

/// The clock that tests pause, from an instant on.
#[derive(Debug, Clone)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

fn none_used(quota: Quota) -> OfKeys {
    let clock = TokioClock(Instant::now());
    RateLimiter::new(quota, HashMapStateStore::default(), clock)
}

impl KeyedLimit {
    /// Returns the limit of this quota.
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quota,
            limits: Mutex::new(Limits {
                of_keys: none_used(quota),
                search_at: next_search(0),
            }),
        }
    }

    /// Whether the key has not reached its limit; if so, this use counts.
    pub(crate) fn allows(&self, key: &Arc<str>) -> bool {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let Limits { of_keys, search_at } = &mut *limits;
        if of_keys.len() >= *search_at {
            of_keys.retain_recent();
            // All of them were used recently. Then all start anew, because keys that are forgotten one by one would be searched for at each use.
            if of_keys.len() >= REMEMBERED {
                *of_keys = none_used(self.quota);
            }
            *search_at = next_search(of_keys.len());
        }
        of_keys.check_key(key).is_ok()
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
        let count = limits.of_keys.len();
        assert!(count <= REMEMBERED, "{count}");
    }

    #[test]
    fn keys_that_have_their_whole_limit_again_are_forgotten() {
        let million = NonZeroU32::MIN.saturating_add(999_999);
        let limit = KeyedLimit::new(Quota::per_second(million));
        for n in 0..REMEMBERED {
            assert!(limit.allows(&Arc::from(n.to_string())));
        }
        let limits = limit.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let count = limits.of_keys.len();
        assert!(count <= FEW, "{count}");
    }
}

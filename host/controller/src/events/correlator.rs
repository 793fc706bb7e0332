//! What is remembered of written Events, so that repeated ones are counted and the writes for an object are limited.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use governor::Quota;
use tokio::time::Instant;

use super::pending::Report;
use crate::keyed_limit::{KeyedLimit, REMEMBERED, next_search};

/// How long a repeated Event increments the count of the first one.
const WINDOW: Duration = Duration::from_secs(600);

/// The rate limit of one object: a burst, and then one write per period.
const BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(24);
const PERIOD: Duration = Duration::from_secs(300);

/// The Events that were written recently, and the rate limits of their objects, as client-go's correlator keeps them.
#[derive(Debug)]
pub(super) struct EventCorrelator {
    hasher: RandomState,
    written: HashMap<EventKey, WrittenEvent>,
    /// How many there are when old ones are looked for.
    search_at: usize,
    limits: KeyedLimit,
}

/// The identity of an Event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct EventKey {
    pub(super) object: Arc<str>,
    /// The hash of the reason and the message, which may be long.
    hash: u64,
}

#[derive(Debug)]
pub(super) struct WrittenEvent {
    pub(super) name: String,
    pub(super) count: i32,
    pub(super) last: Instant,
}

impl EventCorrelator {
    pub(super) fn new() -> Self {
        let quota = Quota::with_period(PERIOD).map(|quota| quota.allow_burst(BURST));
        Self {
            hasher: RandomState::new(),
            written: HashMap::new(),
            search_at: next_search(0),
            limits: KeyedLimit::new(quota.unwrap_or_else(|| Quota::per_minute(BURST))),
        }
    }

    pub(super) fn key(&self, report: &Report, message: &str) -> EventKey {
        EventKey {
            object: report.object(),
            hash: self.hasher.hash_one((&report.reason, message)),
        }
    }

    /// Counts a repeated Event within the window. Returns the first one's name, and the count.
    pub(super) fn repeat(
        &mut self,
        key: &EventKey,
        times: i32,
        now: Instant,
    ) -> Option<(String, i32)> {
        let written = self.written.get_mut(key)?;
        if now.duration_since(written.last) > WINDOW {
            self.written.remove(key);
            return None;
        }
        written.count = written.count.saturating_add(times);
        written.last = now;
        Some((written.name.clone(), written.count))
    }

    pub(super) fn allows(&self, object: &Arc<str>) -> bool {
        self.limits.allows(object)
    }

    pub(super) fn remember(&mut self, key: EventKey, event: WrittenEvent) {
        let now = event.last;
        if self.written.len() >= self.search_at {
            self.written
                .retain(|_, written| now.duration_since(written.last) <= WINDOW);
            // There are still too many: repeated Events become new ones.
            if self.written.len() >= REMEMBERED {
                self.written.clear();
            }
            self.written.shrink_to_fit();
            self.search_at = next_search(self.written.len());
        }
        self.written.insert(key, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers Events that follow each other after this time, and returns how many there were at most.
    fn most(apart: Duration) -> usize {
        let mut correlator = EventCorrelator::new();
        let mut last = Instant::now();
        let remembered = (0..2 * REMEMBERED).map(|n| {
            last += apart;
            let key = EventKey {
                object: Arc::from(n.to_string()),
                hash: 0,
            };
            let event = WrittenEvent {
                name: n.to_string(),
                count: 1,
                last,
            };
            correlator.remember(key, event);
            correlator.written.len()
        });
        remembered.max().unwrap_or_default()
    }

    #[test]
    fn the_number_of_events_that_are_remembered_is_bounded() {
        assert_eq!(most(Duration::ZERO), REMEMBERED);
    }

    #[test]
    fn events_that_are_not_repeated_are_forgotten() {
        let in_window = 60;
        let most = most(WINDOW / in_window);
        assert!((60..=140).contains(&most), "{most}");
    }
}

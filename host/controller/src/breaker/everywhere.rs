//! Whether the calls of one phase of a plugin fail in all namespaces. Pure: time is an argument.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use super::CallEnd;

/// The number of namespaces in which calls fail, so that all are paused.
pub(super) const NAMESPACES: usize = 3;

/// The time within which they fail, and within which no call is answered. A pause during which no call is asked for is forgotten after it, too:
/// TrainJobs that wait are retried more often.
pub(super) const WINDOW: Duration = Duration::from_secs(600);

/// The most namespaces that are remembered.
pub(super) const REMEMBERED: usize = 256;

/// The failures of one phase of a plugin in all namespaces.
#[derive(Debug, Default)]
pub(super) struct Everywhere {
    /// When a call failed last in each namespace, since the last call that was answered.
    failed: HashMap<Arc<str>, Instant>,
    /// When a call was answered last.
    answered: Option<Instant>,
    last: Option<FailureWords>,
    paused: Option<Paused>,
}

#[derive(Debug)]
struct Paused {
    /// The time on the wall, for people.
    since: SystemTime,
    /// When a call was asked for last.
    asked: Instant,
}

/// A failure, in words without content of a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailureWords {
    /// The kind of the failure, as in metrics.
    pub(crate) kind: &'static str,
    /// What happened.
    pub(crate) words: String,
}

/// That calls fail in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Since when calls are paused.
    pub(crate) since: SystemTime,
    /// The number of namespaces in which a call failed, of those that are remembered.
    pub(crate) namespaces: usize,
    /// The last failure.
    pub(crate) last: Option<FailureWords>,
}

/// A change of whether calls are paused for all namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Begins,
    Ends,
}

impl Everywhere {
    /// Whether calls are paused for all namespaces.
    pub(super) const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Notes that a call is asked for, so that a pause is not forgotten.
    pub(super) fn asked(&mut self, now: Instant) {
        self.forget(now);
        if let Some(paused) = &mut self.paused {
            paused.asked = now;
        }
    }

    /// Forgets a pause during which no call was asked for.
    pub(super) fn forget(&mut self, now: Instant) {
        let is_over = |paused: &Paused| now.saturating_duration_since(paused.asked) > WINDOW;
        if self.paused.as_ref().is_some_and(is_over) {
            *self = Self::default();
        }
    }

    /// Notes the end of a call in a namespace. `words` says why it failed, if it did.
    pub(super) fn ended(
        &mut self,
        namespace: &Arc<str>,
        (end, words): (CallEnd, Option<FailureWords>),
        (now, wall): (Instant, SystemTime),
    ) -> Option<Turn> {
        if end == CallEnd::Answered {
            self.failed.clear();
            self.last = None;
            self.answered = Some(now);
            return self.paused.take().map(|_| Turn::Ends);
        }
        if !end.is_failure() {
            return None;
        }
        self.last = words;
        let is_recent = |time: Instant| now.saturating_duration_since(time) <= WINDOW;
        if self.paused.is_none() {
            self.failed.retain(|_, failed| is_recent(*failed));
        }
        if self.failed.len() < REMEMBERED || self.failed.contains_key(namespace) {
            self.failed.insert(namespace.clone(), now);
        }
        let begins = self.paused.is_none()
            && self.failed.len() >= NAMESPACES
            && !self.answered.is_some_and(is_recent);
        begins.then(|| {
            self.paused = Some(Paused {
                since: wall,
                asked: now,
            });
            Turn::Begins
        })
    }

    /// Returns what is known, if calls are paused for all namespaces.
    pub(super) fn failing(&self) -> Option<Failing> {
        let paused = self.paused.as_ref()?;
        Some(Failing {
            since: paused.since,
            namespaces: self.failed.len(),
            last: self.last.clone(),
        })
    }
}

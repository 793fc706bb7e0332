//! Circuit breakers for calls of plugins that fail. Time is an argument, except for [`LoadedBreakers`].
//!
//! A [`Breaker`] is for one namespace, and `everywhere` finds out whether calls fail in all of them. `plugin` has both for one plugin, and
//! `all` those of all loaded plugins.

mod all;
mod everywhere;
mod loaded;
mod plugin;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

pub(crate) use all::AllBreakers;
pub(crate) use everywhere::{Failing, FailureWords, Turn};
pub(crate) use loaded::LoadedBreakers;
pub(crate) use plugin::{Asks, Caller, Ended, Refusal};

/// The number of calls that exhaust their limits and so open the breaker.
const CALLS: usize = 5;
/// The time within which they do.
const WITHIN: Duration = Duration::from_secs(60);

/// How long the breaker stays open: the first time, and at most.
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The breaker of one phase of one plugin for one namespace.
#[derive(Debug)]
pub(crate) struct Breaker(State);

#[derive(Debug)]
enum State {
    /// Closed: calls are made. Holds when recent calls exhausted their limits.
    Closed(VecDeque<Instant>),
    /// Open: no call is made before `until`, and then one.
    Open { until: Instant, pause: Duration },
    /// Half-open: one call is made as a trial. If its end is never reported, another one is made after `until`.
    Trying { until: Instant, pause: Duration },
}

/// The refusal of a call by an open breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// How long the breaker stays open.
    pub(crate) wait: Duration,
    /// The number of calls that exhausted their limits.
    pub(crate) calls: usize,
    /// The time within which they did.
    pub(crate) within: Duration,
}

/// The end of a call, as far as breakers are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The call exhausted its time or its instructions.
    Exhausted,
    /// The call failed early by the plugin's own fault, such as with a trap.
    Failed,
    /// The plugin answered: it succeeded, or refused the TrainJob.
    Answered,
    /// The call says nothing about the plugin, such as one that ended early because of a lookup and is repeated with its answer.
    Undecided,
}

impl CallEnd {
    /// Whether the plugin failed by its own fault.
    pub(crate) const fn is_failure(self) -> bool {
        matches!(self, Self::Exhausted | Self::Failed)
    }
}

/// Which calls open a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threshold {
    /// Several that exhausted their limits.
    Several,
    /// The first one that failed, because the plugin fails in other namespaces too.
    First,
}

impl Default for Breaker {
    fn default() -> Self {
        Self(State::Closed(VecDeque::new()))
    }
}

impl Breaker {
    /// Admits or refuses a call. [`Self::ended`] has to follow an admitted call.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), Open> {
        match self.0 {
            State::Closed(_) => Ok(()),
            State::Open { until, .. } | State::Trying { until, .. } if now < until => Err(Open {
                wait: until.duration_since(now),
                calls: CALLS,
                within: WITHIN,
            }),
            State::Open { pause, .. } | State::Trying { pause, .. } => {
                let until = now + pause;
                self.0 = State::Trying { until, pause };
                Ok(())
            }
        }
    }

    /// Notes the end of a call. Returns whether that opened the breaker.
    pub(crate) fn ended(&mut self, end: CallEnd, threshold: Threshold, now: Instant) -> bool {
        let opens_at_once = threshold == Threshold::First && end.is_failure();
        match (&mut self.0, end) {
            (State::Closed(_), _) if opens_at_once => {
                self.open(now, PAUSE);
                true
            }
            (State::Closed(calls), CallEnd::Exhausted) => {
                calls.push_back(now);
                if calls.len() > CALLS {
                    calls.pop_front();
                }
                let first = calls.front().copied();
                let is_full = calls.len() == CALLS;
                if is_full && first.is_some_and(|first| now.duration_since(first) <= WITHIN) {
                    self.open(now, PAUSE);
                    return true;
                }
                false
            }
            (State::Trying { pause, .. }, _) if opens_at_once || end == CallEnd::Exhausted => {
                let pause = (*pause * 2).min(LONGEST_PAUSE);
                self.open(now, pause);
                true
            }
            (State::Trying { .. }, CallEnd::Answered | CallEnd::Failed) => {
                *self = Self::default();
                false
            }
            (State::Trying { pause, .. }, CallEnd::Undecided) => {
                let pause = *pause;
                self.0 = State::Open { until: now, pause };
                false
            }
            // A call that ends while the breaker is open began before.
            (State::Closed(_) | State::Open { .. }, _)
            | (State::Trying { .. }, CallEnd::Exhausted) => false,
        }
    }

    /// Whether the breaker can be forgotten.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        match &self.0 {
            State::Closed(calls) => calls
                .back()
                .is_none_or(|last| now.duration_since(*last) > WITHIN),
            // A plugin that is still in use would have been called by now.
            State::Open { until, .. } | State::Trying { until, .. } => {
                now.saturating_duration_since(*until) > LONGEST_PAUSE
            }
        }
    }

    /// Whether calls other than trials are refused.
    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self.0, State::Closed(_))
    }

    fn open(&mut self, now: Instant, pause: Duration) {
        let until = now + pause;
        self.0 = State::Open { until, pause };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    impl Breaker {
        fn exhausted(&mut self, now: Instant) -> bool {
            self.ended(CallEnd::Exhausted, Threshold::Several, now)
        }

        fn answered(&mut self, now: Instant) -> bool {
            self.ended(CallEnd::Answered, Threshold::Several, now)
        }
    }

    /// Returns a breaker that opened at `now`.
    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for call in 1..=CALLS {
            breaker.admit(now).unwrap();
            assert_eq!(breaker.exhausted(now), call == CALLS);
        }
        breaker
    }

    #[test]
    fn calls_that_use_up_their_limits_open_it_for_a_while() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let open = |wait| Open {
            wait,
            calls: CALLS,
            within: WITHIN,
        };
        assert_eq!(breaker.admit(now), Err(open(PAUSE)));
        let almost = now + PAUSE - SECOND;
        assert_eq!(breaker.admit(almost), Err(open(SECOND)));
        assert!(breaker.is_open() && !breaker.is_idle(almost));
        assert!(!breaker.is_idle(now + PAUSE + LONGEST_PAUSE));
        assert!(breaker.is_idle(now + PAUSE + LONGEST_PAUSE + SECOND));
    }

    #[test]
    fn successful_calls_do_not_hide_failing_ones() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        let mut opened = false;
        for call in 0..CALLS as u32 {
            breaker.admit(now + SECOND * call).unwrap();
            assert!(!breaker.answered(now + SECOND * call));
            opened = breaker.exhausted(now + SECOND * call);
        }
        assert!(opened);
    }

    #[test]
    fn calls_that_use_up_their_limits_rarely_never_open_it() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        let pause = WITHIN / (CALLS as u32 - 1) + SECOND;
        for call in 0..1_000 {
            let now = now + pause * call;
            breaker.admit(now).unwrap();
            assert!(!breaker.exhausted(now));
        }
        assert!(matches!(&breaker.0, State::Closed(calls) if calls.len() <= CALLS));
    }

    #[test]
    fn one_call_tries_again_and_closes_it_when_it_ends_well() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + PAUSE;
        breaker.admit(later).unwrap();
        assert!(breaker.admit(later).is_err(), "a second one has to wait");
        assert!(!breaker.answered(later + SECOND));
        assert!(!breaker.is_open() && breaker.is_idle(later));
        breaker.admit(later).unwrap();
    }

    #[test]
    fn each_vain_call_doubles_the_pause_up_to_a_maximum() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let wait = breaker.admit(now).unwrap_err().wait;
            pauses.push(wait.as_secs());
            now += wait;
            breaker.admit(now).unwrap();
            assert!(breaker.exhausted(now));
        }
        assert_eq!(pauses, [30, 60, 120, 240, 300, 300]);
    }

    #[test]
    fn a_trial_whose_end_is_not_reported_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = opened(now);
        breaker.admit(now + PAUSE).unwrap();
        breaker.admit(now + PAUSE * 2).unwrap();
        assert!(breaker.admit(now + PAUSE * 2).is_err());
    }

    #[test]
    fn a_call_that_began_before_it_opened_changes_nothing() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let open = breaker.admit(now).unwrap_err();
        assert!(!breaker.exhausted(now) && !breaker.answered(now));
        assert_eq!(breaker.admit(now), Err(open));
    }

    #[test]
    fn a_trial_that_ends_with_a_lookup_is_repeated_at_once() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + PAUSE;
        breaker.admit(later).unwrap();
        assert!(!breaker.ended(CallEnd::Undecided, Threshold::Several, later));
        breaker.admit(later).unwrap();
        assert!(breaker.exhausted(later));
        assert_eq!(breaker.admit(later).unwrap_err().wait, PAUSE * 2);
    }

    #[test]
    fn a_call_that_fails_early_closes_it_unless_the_first_failure_opens_it() {
        let now = Instant::now();
        for (threshold, is_open) in [(Threshold::Several, false), (Threshold::First, true)] {
            let mut breaker = opened(now);
            breaker.admit(now + PAUSE).unwrap();
            let ended = breaker.ended(CallEnd::Failed, threshold, now + PAUSE);
            assert_eq!((ended, breaker.is_open()), (is_open, is_open));
            let mut breaker = Breaker::default();
            breaker.admit(now).unwrap();
            assert_eq!(breaker.ended(CallEnd::Failed, threshold, now), is_open);
        }
    }
}

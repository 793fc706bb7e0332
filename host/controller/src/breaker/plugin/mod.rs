//! The breakers of one plugin.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Instant, SystemTime},
};

use trainyard_model::plugin::Phase;

use super::{
    Breaker, CallEnd, Failing, FailureWords, Open, Threshold, Turn,
    everywhere::{Everywhere, NAMESPACES, WINDOW},
};

/// The most breakers of a plugin. Calls of further namespaces are made as if they had not failed.
const BREAKERS: usize = 1_024;

/// The namespace and phase that a breaker is for.
pub(crate) type Caller = (Arc<str>, Phase);

/// The breakers of namespaces in which the calls of a plugin failed recently, and in each phase whether they fail everywhere.
#[derive(Debug, Default)]
pub(crate) struct PluginBreakers {
    breakers: HashMap<Caller, Breaker>,
    phases: HashMap<Phase, Everywhere>,
}

/// Who asks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// What waits if the plugin is paused.
    ToUse,
    /// What finds out whether the plugin fails, so that no pause must answer it. It pauses nothing either.
    ToJudge,
}

/// The refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// By the breaker of the namespace.
    Namespace(Open),
    /// Because calls fail in all namespaces, and in this one too.
    Everywhere {
        /// The number of namespaces in which calls failed before all were paused.
        namespaces: usize,
        /// The time within which they did, in seconds.
        within: u64,
    },
}

impl Refusal {
    /// Returns the refusal while calls fail in all namespaces.
    pub(crate) const fn everywhere() -> Self {
        Self::Everywhere {
            namespaces: NAMESPACES,
            within: WINDOW.as_secs(),
        }
    }
}

/// What the end of a call changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whether it opened the breaker of its namespace.
    pub(crate) opened: bool,
    pub(crate) turn: Option<Turn>,
}

impl PluginBreakers {
    /// Admits or refuses a call. [`Self::ended`] has to follow an admitted call.
    pub(crate) fn admit(
        &mut self,
        caller: &Caller,
        asks: Asks,
        now: Instant,
    ) -> Result<(), Refusal> {
        let everywhere = self.phases.get_mut(&caller.1);
        let is_paused = everywhere.is_some_and(|everywhere| {
            everywhere.asked(now);
            everywhere.is_paused()
        });
        if self.breakers.is_empty() || asks == Asks::ToJudge {
            return Ok(());
        }
        let Some(breaker) = self.breakers.get_mut(caller) else {
            return Ok(());
        };
        if breaker.is_idle(now) {
            self.breakers.remove(caller);
            return Ok(());
        }
        breaker.admit(now).map_err(|open| match is_paused {
            true => Refusal::everywhere(),
            false => Refusal::Namespace(open),
        })
    }

    /// Notes the end of a call. `words` says why it failed, if it did. A call that judges the plugin neither begins nor ends a pause.
    pub(crate) fn ended(
        &mut self,
        (caller, asks): (&Caller, Asks),
        (end, words): (CallEnd, Option<FailureWords>),
        (now, wall): (Instant, SystemTime),
    ) -> Ended {
        if asks == Asks::ToJudge {
            return Ended::default();
        }
        let (namespace, phase) = caller;
        let everywhere = self.phases.entry(*phase).or_default();
        let turn = everywhere.ended(namespace, (end, words), (now, wall));
        let threshold = match everywhere.is_paused() {
            true => Threshold::First,
            false => Threshold::Several,
        };
        if turn == Some(Turn::Ends) {
            self.breakers.retain(|(_, of), _| of != phase);
        }
        let is_noted =
            end == CallEnd::Exhausted || threshold == Threshold::First && end.is_failure();
        if is_noted && self.breakers.len() >= BREAKERS {
            self.sweep(now);
        }
        let has_room = self.breakers.len() < BREAKERS;
        let opened = match self.breakers.get_mut(caller) {
            Some(breaker) => breaker.ended(end, threshold, now),
            None if is_noted && has_room => {
                let breaker = self.breakers.entry(caller.clone()).or_default();
                breaker.ended(end, threshold, now)
            }
            None => false,
        };
        Ended { opened, turn }
    }

    /// Counts the breakers that are open. One that is idle is closed, also if the plugin is no longer called.
    pub(crate) fn open(&mut self, now: Instant) -> usize {
        self.sweep(now);
        let breakers = self.breakers.values();
        breakers.filter(|breaker| breaker.is_open()).count()
    }

    /// Whether calls of this phase are paused for all namespaces.
    pub(crate) fn is_paused_in(&self, phase: Phase) -> bool {
        self.phases.get(&phase).is_some_and(Everywhere::is_paused)
    }

    /// Returns the first phase whose calls are paused for all namespaces, with what is known.
    pub(crate) fn failing(&mut self, now: Instant) -> Option<(Phase, Failing)> {
        Phase::ALL.into_iter().find_map(|phase| {
            let everywhere = self.phases.get_mut(&phase)?;
            everywhere.forget(now);
            Some((phase, everywhere.failing()?))
        })
    }

    /// Makes calls again as if none had failed. Returns whether calls were paused for all namespaces.
    pub(crate) fn resume(&mut self) -> bool {
        let was_paused = self.phases.values().any(Everywhere::is_paused);
        *self = Self::default();
        was_paused
    }

    /// Removes idle breakers.
    fn sweep(&mut self, now: Instant) {
        self.breakers.retain(|_, breaker| !breaker.is_idle(now));
    }
}

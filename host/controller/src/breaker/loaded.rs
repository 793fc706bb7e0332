//! The breakers of a loaded plugin, by the clock of the process.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use trainyard_model::{plugin::Phase, plugin_info::PluginInfo};

use super::{Asks, CallEnd, Caller, Ended, Failing, FailureWords, Refusal, plugin::PluginBreakers};

/// The breakers of a loaded plugin.
pub(crate) struct LoadedBreakers {
    plugin: Arc<PluginInfo>,
    state: Mutex<PluginBreakers>,
}

impl LoadedBreakers {
    pub(crate) fn new(plugin: Arc<PluginInfo>) -> Self {
        Self {
            plugin,
            state: Mutex::default(),
        }
    }

    /// The plugin.
    pub(crate) const fn plugin(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    /// Admits or refuses a call. [`Self::ended`] has to follow an admitted call.
    pub(crate) fn admit(&self, caller: &Caller, asks: Asks) -> Result<(), Refusal> {
        self.state().admit(caller, asks, Instant::now())
    }

    /// Notes the end of a call. `words` says why it failed, if it did.
    pub(crate) fn ended(
        &self,
        caller: (&Caller, Asks),
        end: (CallEnd, Option<FailureWords>),
    ) -> Ended {
        let now = (Instant::now(), SystemTime::now());
        self.state().ended(caller, end, now)
    }

    /// Counts the breakers that are open.
    pub(crate) fn open(&self) -> usize {
        self.state().open(Instant::now())
    }

    /// Whether calls of this phase are paused for all namespaces.
    pub(crate) fn is_paused_in(&self, phase: Phase) -> bool {
        self.state().is_paused_in(phase)
    }

    /// Returns the first phase whose calls are paused for all namespaces, with what is known.
    pub(crate) fn failing(&self) -> Option<(Phase, Failing)> {
        self.state().failing(Instant::now())
    }

    /// Makes calls again as if none had failed. Returns whether calls were paused for all namespaces.
    pub(crate) fn resume(&self) -> bool {
        self.state().resume()
    }

    fn state(&self) -> MutexGuard<'_, PluginBreakers> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

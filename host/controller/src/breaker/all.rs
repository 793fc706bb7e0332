//! The breakers of all plugins of the process.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use trainyard_model::plugin_info::PluginInfo;

use super::LoadedBreakers;

/// The breakers of all loaded plugins. Two generations may have plugins of one name.
#[derive(Clone, Default)]
pub(crate) struct AllBreakers(Arc<Mutex<Vec<Weak<LoadedBreakers>>>>);

impl AllBreakers {
    /// Adds those of a plugin, which count until they are dropped.
    pub(crate) fn add(&self, breakers: &Arc<LoadedBreakers>) {
        let mut all = self.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(breakers));
    }

    /// Returns those of a loaded plugin.
    pub(crate) fn of(&self, plugin: &Arc<PluginInfo>) -> Option<Arc<LoadedBreakers>> {
        let mut all = self.all().into_iter();
        all.find(|breakers| Arc::ptr_eq(breakers.plugin(), plugin))
    }

    /// Calls the plugins of a name again as if no call had failed. Returns whether one was paused for all namespaces.
    pub(crate) fn resume(&self, name: &str) -> bool {
        let all = self.all().into_iter();
        let named = all.filter(|breakers| &*breakers.plugin().id.name == name);
        named.filter(|breakers| breakers.resume()).count() > 0
    }

    /// Returns those of each plugin that is loaded now.
    pub(crate) fn all(&self) -> Vec<Arc<LoadedBreakers>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<LoadedBreakers>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AllBreakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllBreakers").finish_non_exhaustive()
    }
}

//! The turns of the lists of Events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Lets each namespace list its Events once at a time. The API server reads all Events of the namespace for that, and whoever may create
/// Events there determines their size.
#[derive(Debug, Default)]
pub(super) struct EventLists(Mutex<HashMap<Arc<str>, Weak<tokio::sync::Mutex<()>>>>);

impl EventLists {
    /// Returns what a list of this namespace locks.
    pub(super) fn of(&self, namespace: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lists) = known.get(namespace).and_then(Weak::upgrade) {
            return lists;
        }
        known.retain(|_, lists| lists.strong_count() > 0);
        let lists = Arc::default();
        known.insert(namespace.clone(), Arc::downgrade(&lists));
        lists
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lists_of_one_namespace_take_turns() {
        let (lists, a, b) = (EventLists::default(), Arc::from("a"), Arc::from("b"));
        let first = lists.of(&a);
        let held = first.try_lock().unwrap();
        assert!(lists.of(&a).try_lock().is_err());
        assert!(lists.of(&b).try_lock().is_ok());
        drop(held);
        assert!(lists.of(&a).try_lock().is_ok());
        drop(first);
        drop(lists.of(&b));
        assert_eq!(lists.0.lock().unwrap().len(), 1);
    }
}

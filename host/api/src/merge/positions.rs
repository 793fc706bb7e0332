//! The positions of the items of keyed lists.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
};

use serde_json::Value;

/// The value of an item's key; `None` for an item without it.
#[derive(Clone, Copy, Eq)]
struct Key<'v>(Option<&'v Value>);

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        comparisons::count();
        self.0 == other.0
    }
}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The positions of a list's items by the values of their key. They are indexed, because the only limit of a list is the size of its
/// object.
pub(super) struct Positions<'v>(HashMap<Key<'v>, usize>);

impl<'v> Positions<'v> {
    /// Indexes a list; of items with the same key, the first one is used.
    pub(super) fn of(items: &'v [Value], key: &str) -> Self {
        Self::of_keys(items.iter().map(|item| item.get(key)))
    }

    pub(super) fn of_keys(keys: impl Iterator<Item = Option<&'v Value>>) -> Self {
        let mut positions = HashMap::with_capacity(keys.size_hint().0);
        for (at, key) in keys.enumerate() {
            positions.entry(Key(key)).or_insert(at);
        }
        Self(positions)
    }

    /// Returns the position of the item with this value of the key.
    pub(super) fn get(&self, key: Option<&Value>) -> Option<usize> {
        self.0.get(&Key(key)).copied()
    }
}

/// The number of key comparisons on this thread.
#[cfg(test)]
pub(super) mod comparisons {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    pub(in crate::merge) fn during(act: impl FnOnce()) -> u64 {
        let before = COUNT.get();
        act();
        COUNT.get() - before
    }
}

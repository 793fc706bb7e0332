//! One kind's objects, the newest version that anybody has seen of each.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

/// A slim copy of an object.
pub trait State {
    /// Its `metadata.resourceVersion`. Since Kubernetes 1.35 they are numbers in the order of the writes, as they were in fact
    /// before.
    fn version(&self) -> u64;
}

/// Slim copies of all objects of a kind.
///
/// Watches and the answers to the controller's own writes both feed it, and the newer version wins: so a reconcile sees what
/// the last one wrote, before any watch has shown it.
#[derive(Debug)]
pub struct Store<K, S> {
    objects: RwLock<HashMap<K, Arc<S>>>,
    synced: watch::Sender<bool>,
}

impl<K: Eq + Hash + Clone, S: State> Default for Store<K, S> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K: Eq + Hash + Clone, S: State> Store<K, S> {
    /// The object, as far as it is known.
    pub fn get(&self, key: &K) -> Option<Arc<S>> {
        self.read().get(key).cloned()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps a version of the object, unless a newer one is known. Says whether it was kept.
    pub fn put(&self, key: K, state: S) -> bool {
        let mut objects = self.write();
        let newer = objects
            .get(&key)
            .is_none_or(|known| known.version() < state.version());
        if newer {
            objects.insert(key, Arc::new(state));
        }
        newer
    }

    /// The newest version of all.
    pub fn newest(&self) -> u64 {
        let objects = self.read();
        objects
            .values()
            .map(|state| state.version())
            .max()
            .unwrap_or(0)
    }

    /// Forgets the object that was deleted at this version, unless one of that name was made since.
    pub fn remove(&self, key: &K, version: u64) {
        let mut objects = self.write();
        if objects
            .get(key)
            .is_some_and(|known| known.version() <= version)
        {
            objects.remove(key);
        }
    }

    /// Takes a whole list; `before` is the newest version of when it was asked for. Returns the keys of what is gone.
    pub fn replace(&self, listed: Vec<(K, S)>, before: u64) -> Vec<K> {
        let listed_versions = listed.iter().map(|(_, state)| state.version());
        let last = listed_versions.fold(before, u64::max);
        let keys: HashSet<K> = listed.iter().map(|(key, _)| key.clone()).collect();
        for (key, state) in listed {
            self.put(key, state);
        }
        let mut gone = Vec::new();
        // What was written after the list was made is in no list yet. What was known before, and is in none, is gone.
        self.write().retain(|key, state| {
            let stays = keys.contains(key) || state.version() > last;
            if !stays {
                gone.push(key.clone());
            }
            stays
        });
        self.synced.send_replace(true);
        gone
    }

    /// Whether a whole list was taken.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until a whole list was taken.
    pub async fn synced(&self) {
        // The sender lives as long as the store: waiting can't fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    // No code panics while it holds the lock; what was written before such a panic would be whole all the same.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<K, Arc<S>>> {
        self.objects
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<K, Arc<S>>> {
        self.objects
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Debug, PartialEq)]
    struct At(u64);

    impl State for At {
        fn version(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn the_newer_version_wins() {
        let store = Store::default();
        assert!(store.put("a", At(5)));
        assert!(!store.put("a", At(4)));
        assert!(!store.put("a", At(5)));
        assert_eq!(*store.get(&"a").unwrap(), At(5));
        store.remove(&"a", 4);
        assert_eq!(store.len(), 1);
        store.remove(&"a", 6);
        assert!(store.is_empty());
    }

    #[test]
    fn a_list_drops_what_is_gone_and_keeps_what_is_newer_than_it() {
        let store = Store::default();
        store.put("gone", At(1));
        store.put("stays", At(2));
        let before = store.newest();
        store.put("written since", At(9));
        assert!(!store.is_synced());
        assert_eq!(
            store.replace(vec![("stays", At(3)), ("new", At(4))], before),
            ["gone"]
        );
        assert!(store.is_synced());
        assert_eq!(*store.get(&"stays").unwrap(), At(3));
        assert_eq!(store.len(), 3);
    }

    #[test]
    fn what_went_while_nobody_watched_goes_even_where_it_was_the_newest() {
        let store = Store::default();
        store.put("stays", At(2));
        store.put("gone", At(7));
        let listed = vec![("stays", At(2))];
        assert_eq!(store.replace(listed, store.newest()), ["gone"]);
        assert_eq!(store.replace(Vec::new(), store.newest()), ["stays"]);
        assert!(store.is_empty());
    }
}

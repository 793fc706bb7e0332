//! One kind's objects, the newest version that anybody has seen of each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// For how long it is known that an object went: longer than any answer to an own write of it is under way.
const GONE_FOR: Duration = Duration::from_secs(120);

/// A slim copy of an object.
pub trait State {
    /// Its `metadata.resourceVersion`. Since Kubernetes 1.35 they are numbers in the order of the writes, as they were in fact
    /// before.
    fn version(&self) -> u64;
}

/// Slim copies of all objects of a kind.
///
/// Watches and the answers to the controller's own writes both feed it, and the newer version wins: so a reconcile sees what
/// the last one wrote, before any watch has shown it, and an answer that comes late brings back nothing that has gone since.
#[derive(Debug)]
pub struct Store<K, S> {
    objects: RwLock<Objects<K, S>>,
    synced: watch::Sender<bool>,
}

#[derive(Debug)]
struct Objects<K, S> {
    there: HashMap<K, Arc<S>>,
    /// The versions at which objects went, of late.
    gone: HashMap<K, u64>,
    /// The same in the order in which they went.
    went: VecDeque<(Instant, K, u64)>,
}

impl<K: Eq + Hash + Clone, S: State> Default for Store<K, S> {
    fn default() -> Self {
        Self {
            objects: RwLock::new(Objects {
                there: HashMap::new(),
                gone: HashMap::new(),
                went: VecDeque::new(),
            }),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K: Eq + Hash + Clone, S: State> Store<K, S> {
    /// The object, as far as it is known.
    pub fn get(&self, key: &K) -> Option<Arc<S>> {
        self.read().there.get(key).cloned()
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<K> {
        self.read().there.keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().there.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps a version of the object, unless a newer one is known, or that it went since. Says whether it was kept.
    pub fn put(&self, key: K, state: S) -> bool {
        self.write().put(key, state)
    }

    /// The newest version of all.
    pub fn newest(&self) -> u64 {
        let objects = self.read();
        objects
            .there
            .values()
            .map(|state| state.version())
            .max()
            .unwrap_or(0)
    }

    /// Forgets the object that was deleted at this version, unless one of that name was made since.
    pub fn remove(&self, key: &K, version: u64) {
        let mut objects = self.write();
        if objects
            .there
            .get(key)
            .is_some_and(|known| known.version() <= version)
        {
            objects.there.remove(key);
        }
        objects.went(key.clone(), version);
    }

    /// Takes a whole list; `before` is the newest version of when it was asked for. Returns what is gone, as it was last.
    pub fn replace(&self, listed: Vec<(K, S)>, before: u64) -> Vec<(K, Arc<S>)> {
        let listed_versions = listed.iter().map(|(_, state)| state.version());
        let last = listed_versions.fold(before, u64::max);
        let keys: HashSet<K> = listed.iter().map(|(key, _)| key.clone()).collect();
        let mut objects = self.write();
        for (key, state) in listed {
            objects.put(key, state);
        }
        // What was written after the list was made is in no list yet. What was known before, and is in none, is gone.
        let is_gone = |key: &K, state: &mut Arc<S>| !keys.contains(key) && state.version() <= last;
        let gone: Vec<_> = objects.there.extract_if(is_gone).collect();
        for (key, _) in &gone {
            objects.went(key.clone(), last);
        }
        drop(objects);
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
    fn read(&self) -> RwLockReadGuard<'_, Objects<K, S>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<K, S>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, S: State> Objects<K, S> {
    fn put(&mut self, key: K, state: S) -> bool {
        let known = self.there.get(&key).map(|known| known.version());
        let gone = self.gone.get(&key).copied();
        let newer = known.max(gone).is_none_or(|known| known < state.version());
        if newer {
            self.there.insert(key, Arc::new(state));
        }
        newer
    }

    /// Remembers that the object went, and forgets what went long ago.
    fn went(&mut self, key: K, version: u64) {
        let now = Instant::now();
        while let Some((since, _, _)) = self.went.front()
            && now.duration_since(*since) > GONE_FOR
        {
            if let Some((_, key, version)) = self.went.pop_front()
                && self.gone.get(&key) == Some(&version)
            {
                self.gone.remove(&key);
            }
        }
        self.gone.insert(key.clone(), version);
        self.went.push_back((now, key, version));
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
    fn an_answer_that_comes_late_brings_nothing_back() {
        let store = Store::default();
        store.put("deleted", At(5));
        store.put("not listed", At(5));
        store.remove(&"deleted", 7);
        store.replace(Vec::new(), 8);
        assert!(!store.put("deleted", At(6)) && !store.put("not listed", At(6)));
        assert!(store.is_empty());
        // One of the same name that was made since.
        assert!(store.put("deleted", At(9)) && store.put("not listed", At(9)));
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
            [("gone", At(1).into())]
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
        let gone = store.replace(listed, store.newest());
        assert_eq!(gone, [("gone", At(7).into())]);
        let gone = store.replace(Vec::new(), store.newest());
        assert_eq!(gone, [("stays", At(2).into())]);
        assert!(store.is_empty());
    }
}

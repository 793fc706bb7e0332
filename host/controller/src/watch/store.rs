//! The newest known version of each object of a kind.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// How long deletions are remembered: longer than any answer to a write may take.
const DELETIONS_KEPT: Duration = Duration::from_secs(120);

/// A slim copy of an object.
pub trait State {
    /// Its `metadata.resourceVersion`, which is a number in the order of writes: by contract since Kubernetes 1.35, and in practice before.
    fn version(&self) -> u64;
}

/// An object that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableObject {
    pub(super) version: u64,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// What cannot be decoded, without any value.
    pub why: Box<str>,
}

impl State for UnreadableObject {
    fn version(&self) -> u64 {
        self.version
    }
}

impl UnreadableObject {
    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> String {
        self.version.to_string()
    }
}

/// The result of decoding an object.
pub(crate) type Read<S> = Result<S, UnreadableObject>;

/// Slim copies of all objects of a kind.
///
/// Both watches and the answers to the controller's own writes update it, and the newer version wins. So a reconcile sees the writes of the
/// last one before the watch does, and a late answer does not restore a deleted object.
#[derive(Debug)]
pub struct Store<K, S> {
    objects: RwLock<Objects<K, S>>,
    synced: watch::Sender<bool>,
}

#[derive(Debug)]
struct Objects<K, S> {
    known: HashMap<K, Arc<S>>,
    /// The objects whose newest version cannot be decoded.
    unreadable: HashMap<K, Arc<UnreadableObject>>,
    /// The versions at which objects were deleted recently.
    deleted: HashMap<K, u64>,
    /// The same in order of deletion.
    deletions: VecDeque<(Instant, K, u64)>,
}

impl<K: Eq + Hash + Clone, S: State> Default for Store<K, S> {
    fn default() -> Self {
        Self {
            objects: RwLock::new(Objects {
                known: HashMap::new(),
                unreadable: HashMap::new(),
                deleted: HashMap::new(),
                deletions: VecDeque::new(),
            }),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K: Eq + Hash + Clone, S: State> Store<K, S> {
    /// Returns the object; `None` if it does not exist or its newest version cannot be decoded.
    pub fn get(&self, key: &K) -> Option<Arc<S>> {
        self.read().known.get(key).cloned()
    }

    /// Returns the object if its newest version cannot be decoded.
    pub fn unreadable(&self, key: &K) -> Option<Arc<UnreadableObject>> {
        self.read().unreadable.get(key).cloned()
    }

    /// Returns the number of objects that cannot be decoded.
    pub fn count_unreadable(&self) -> usize {
        self.read().unreadable.len()
    }

    /// Returns the keys of all objects, including those that cannot be decoded.
    pub fn keys(&self) -> Vec<K> {
        let objects = self.read();
        let keys = objects.known.keys().chain(objects.unreadable.keys());
        keys.cloned().collect()
    }

    /// Returns all objects that can be decoded, with their keys.
    pub fn objects(&self) -> Vec<(K, Arc<S>)> {
        let objects = self.read();
        let known = objects.known.iter();
        known.map(|(key, it)| (key.clone(), it.clone())).collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.read().known.len()
    }

    /// Whether the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores a version of the object, unless a newer one or a later deletion is known. Returns whether it was stored.
    pub fn put(&self, key: K, state: S) -> bool {
        self.put_read(key, Ok(state))
    }

    /// The same for the result of decoding an object.
    pub(crate) fn put_read(&self, key: K, read: Read<S>) -> bool {
        self.write().put(key, read)
    }

    /// Returns the newest version of all objects.
    pub fn newest(&self) -> u64 {
        let objects = self.read();
        let known = objects.known.values().map(|state| state.version());
        let unreadable = objects.unreadable.values().map(|state| state.version());
        known.chain(unreadable).max().unwrap_or(0)
    }

    /// Removes the object that was deleted at this version, unless it was recreated since.
    pub fn remove(&self, key: &K, version: u64) {
        let mut objects = self.write();
        if objects.version(key).is_some_and(|known| known <= version) {
            objects.known.remove(key);
            objects.unreadable.remove(key);
        }
        objects.note_deletion(key.clone(), version);
    }

    /// Returns the decodable objects that are missing from a complete list. `before` is the newest version when the list was requested.
    pub(crate) fn missing(&self, listed: &[(K, Read<S>)], before: u64) -> Vec<(K, Arc<S>)> {
        let missing = Missing::from(listed, before);
        let objects = self.read();
        let known = objects.known.iter();
        let found = known.filter(|(key, state)| missing.has(key, state.version()));
        found
            .map(|(key, state)| (key.clone(), state.clone()))
            .collect()
    }

    /// Stores a complete list and returns the keys that are missing from it. `before` is the newest version when it was requested.
    pub(crate) fn replace(&self, listed: Vec<(K, Read<S>)>, before: u64) -> Vec<K> {
        let missing = Missing::from(&listed, before);
        let mut objects = self.write();
        for (key, read) in listed {
            objects.put(key, read);
        }
        let known = objects
            .known
            .extract_if(|key, state| missing.has(key, state.version()));
        let mut deleted: Vec<_> = known.map(|(key, _)| key).collect();
        let unreadable = objects
            .unreadable
            .extract_if(|key, state| missing.has(key, state.version()));
        deleted.extend(unreadable.map(|(key, _)| key));
        for key in &deleted {
            objects.note_deletion(key.clone(), missing.last);
        }
        drop(objects);
        self.synced.send_replace(true);
        deleted
    }

    /// Whether a complete list was stored.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until a complete list is stored.
    pub async fn synced(&self) {
        // The sender lives as long as the store, so waiting cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    // No code panics while it holds the lock, and the data would be consistent even then.
    fn read(&self) -> RwLockReadGuard<'_, Objects<K, S>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<K, S>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The objects that are missing from a list.
struct Missing<K> {
    listed: HashSet<K>,
    /// The newest version that the list can include.
    last: u64,
}

impl<K: Eq + Hash + Clone> Missing<K> {
    fn from<S: State>(listed: &[(K, Read<S>)], before: u64) -> Self {
        let versions = listed.iter().map(|(_, read)| version(read));
        Self {
            last: versions.fold(before, u64::max),
            listed: listed.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// An object that was written after the list may be missing from it. An older one that is missing was deleted.
    fn has(&self, key: &K, version: u64) -> bool {
        version <= self.last && !self.listed.contains(key)
    }
}

fn version<S: State>(read: &Read<S>) -> u64 {
    match read {
        Ok(state) => state.version(),
        Err(unreadable) => unreadable.version,
    }
}

impl<K: Eq + Hash + Clone, S: State> Objects<K, S> {
    fn version(&self, key: &K) -> Option<u64> {
        let known = self.known.get(key).map(|known| known.version());
        known.max(self.unreadable.get(key).map(|known| known.version))
    }

    fn put(&mut self, key: K, read: Read<S>) -> bool {
        let known = self.version(&key).max(self.deleted.get(&key).copied());
        let newer = known.is_none_or(|known| known < version(&read));
        if newer {
            self.known.remove(&key);
            self.unreadable.remove(&key);
            match read {
                Ok(state) => drop(self.known.insert(key, Arc::new(state))),
                Err(why) => drop(self.unreadable.insert(key, Arc::new(why))),
            }
        }
        newer
    }

    /// Notes a deletion, and forgets old ones.
    fn note_deletion(&mut self, key: K, version: u64) {
        let now = Instant::now();
        while let Some((since, _, _)) = self.deletions.front()
            && now.duration_since(*since) > DELETIONS_KEPT
        {
            if let Some((_, key, version)) = self.deletions.pop_front()
                && self.deleted.get(&key) == Some(&version)
            {
                self.deleted.remove(&key);
            }
        }
        self.deleted.insert(key.clone(), version);
        self.deletions.push_back((now, key, version));
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
    fn a_late_answer_does_not_restore_a_deleted_object() {
        let store = Store::default();
        store.put("deleted", At(5));
        store.put("not listed", At(5));
        store.remove(&"deleted", 7);
        store.replace(Vec::new(), 8);
        assert!(!store.put("deleted", At(6)) && !store.put("not listed", At(6)));
        assert!(store.is_empty());
        // An object of the same name that was created since.
        assert!(store.put("deleted", At(9)) && store.put("not listed", At(9)));
    }

    #[test]
    fn a_list_removes_missing_objects_and_keeps_newer_ones() {
        let store = Store::default();
        store.put("gone", At(1));
        store.put("stays", At(2));
        let before = store.newest();
        store.put("written since", At(9));
        assert!(!store.is_synced());
        let list = || vec![("stays", Ok(At(3))), ("new", Ok(At(4)))];
        let missing = store.missing(&list(), before);
        assert_eq!(missing, [("gone", At(1).into())]);
        assert_eq!(store.replace(list(), before), ["gone"]);
        assert!(store.is_synced());
        assert_eq!(*store.get(&"stays").unwrap(), At(3));
        assert_eq!(store.len(), 3);
    }

    #[test]
    fn an_object_deleted_without_a_watch_is_removed_even_if_it_was_the_newest() {
        let store = Store::default();
        store.put("stays", At(2));
        store.put("gone", At(7));
        let listed = vec![("stays", Ok(At(2)))];
        assert_eq!(store.replace(listed, store.newest()), ["gone"]);
        assert_eq!(store.replace(Vec::new(), store.newest()), ["stays"]);
        assert!(store.is_empty());
    }

    fn unreadable(version: u64) -> Read<At> {
        Err(UnreadableObject {
            version,
            uid: "u".into(),
            why: "spec: nested too deep".into(),
        })
    }

    #[test]
    fn an_older_state_does_not_outlive_a_version_that_is_unreadable() {
        let store = Store::default();
        store.put("a", At(5));
        assert!(!store.put_read("a", unreadable(4)));
        assert!(store.get(&"a").is_some() && store.unreadable(&"a").is_none());
        assert!(store.put_read("a", unreadable(6)));
        assert!(store.get(&"a").is_none());
        assert_eq!(store.unreadable(&"a").unwrap().version(), 6);
        assert_eq!((store.newest(), store.count_unreadable()), (6, 1));
        assert_eq!(store.keys(), ["a"]);
        // A late answer is even older; a newer version is readable again.
        assert!(!store.put("a", At(5)) && store.put("a", At(7)));
        assert!(store.unreadable(&"a").is_none());
        assert_eq!(*store.get(&"a").unwrap(), At(7));
    }

    #[test]
    fn an_unreadable_object_is_removed_like_any_other() {
        let store = Store::default();
        store.replace(vec![("a", unreadable(2)), ("b", unreadable(3))], 0);
        store.remove(&"a", 4);
        assert_eq!(store.keys(), ["b"]);
        assert!(store.missing(&[], store.newest()).is_empty());
        assert_eq!(store.replace(Vec::new(), store.newest()), ["b"]);
        assert_eq!(store.count_unreadable(), 0);
        assert!(!store.put("a", At(3)));
    }
}

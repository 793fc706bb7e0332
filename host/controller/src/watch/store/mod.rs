//! The newest known version of each object of a kind.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use thiserror::Error;
use tokio::{sync::watch, time::Instant};

use super::{
    state::{Namespaced, State},
    texts::Texts,
};

/// How long deletions are remembered: longer than any answer to a write may take.
const DELETIONS_KEPT: Duration = Duration::from_secs(120);

/// The most deletions that are remembered: more than API servers carry out in the time that an answer may take.
const MOST_DELETIONS: usize = 64 << 10;

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

/// A complete list that is older than what is known. No API server returns one, unless its state was replaced by an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the API server returned resourceVersion {found} after {known}, so its state was replaced by an older one, such as a backup of etcd"
)]
pub struct StateReplaced {
    known: u64,
    found: u64,
}

/// A complete list of a kind, whose objects were stored when they arrived.
#[derive(Debug)]
pub(crate) struct CompleteList<K> {
    /// The objects with their versions.
    pub(crate) objects: Vec<(K, u64)>,
    /// The version of the list.
    pub(crate) version: u64,
    /// The newest version that was known when it was requested.
    pub(crate) before: u64,
}

/// The result of decoding an object.
pub(crate) type Read<S> = Result<S, UnreadableObject>;

/// Slim copies of all objects of a kind.
///
/// Both watches and the answers to the controller's own writes update it, and the newer version wins. So a reconcile sees the writes of the
/// last one before the watch does, and a late answer does not restore a deleted object. Versions only mean this as long as the API server
/// keeps its state, which complete lists are checked for.
#[derive(Debug)]
pub struct Store<K, S> {
    objects: RwLock<Objects<K, S>>,
    synced: watch::Sender<bool>,
}

#[derive(Debug)]
struct Objects<K, S> {
    /// The newest version of an object, a deletion or a list.
    newest: u64,
    known: HashMap<K, Arc<S>>,
    /// The objects whose newest version cannot be decoded.
    unreadable: HashMap<K, Arc<UnreadableObject>>,
    /// The versions at which objects were deleted recently.
    deleted: HashMap<K, u64>,
    /// The same in order of deletion.
    deletions: VecDeque<(Instant, K, u64)>,
    texts: Texts<K>,
}

impl<K: Eq + Hash + Clone + Namespaced, S: State> Default for Store<K, S> {
    fn default() -> Self {
        Self {
            objects: RwLock::new(Objects {
                newest: 0,
                known: HashMap::new(),
                unreadable: HashMap::new(),
                deleted: HashMap::new(),
                deletions: VecDeque::new(),
                texts: Texts::default(),
            }),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K: Eq + Hash + Clone + Namespaced, S: State> Store<K, S> {
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

    /// Returns the newest version of an object, a deletion or a list.
    pub fn newest(&self) -> u64 {
        self.read().newest
    }

    /// Checks that a complete list is not older than what is known: it includes every change up to its version, and is at least as new as
    /// what was known when it was requested.
    ///
    /// # Errors
    /// It is older.
    pub(crate) fn check(&self, list: &CompleteList<K>) -> Result<(), StateReplaced> {
        let replaced = |known, found| Err(StateReplaced { known, found });
        if list.version < list.before {
            return replaced(list.before, list.version);
        }
        let objects = self.read();
        for &(ref key, found) in &list.objects {
            let known = objects.version(key).max(objects.deleted.get(key).copied());
            if let Some(known) = known.filter(|known| found < *known && *known <= list.version) {
                return replaced(known, found);
            }
        }
        Ok(())
    }

    /// Removes the object that was deleted at this version, unless it was recreated since.
    pub fn remove(&self, key: &K, version: u64) {
        let mut objects = self.write();
        if objects.version(key).is_some_and(|known| known <= version) {
            objects.forget(key);
        }
        objects.note_deletion(key.clone(), version);
    }

    /// Returns the bytes of text that are held for each namespace.
    pub(crate) fn text_bytes(&self) -> Vec<(Option<Arc<str>>, usize)> {
        let objects = self.read();
        let held = objects.texts.held.iter();
        held.map(|(namespace, bytes)| (namespace.clone(), *bytes))
            .collect()
    }

    /// Whether an object whose text was left out could be held now, if it is listed again.
    pub(crate) fn has_room_again(&self) -> bool {
        self.read().texts.has_room_again()
    }

    /// Returns the decodable objects that are missing from a complete list.
    pub(crate) fn missing(&self, list: &CompleteList<K>) -> Vec<(K, Arc<S>)> {
        let missing = Missing::from(list);
        let objects = self.read();
        let known = objects.known.iter();
        let found = known.filter(|(key, state)| missing.has(key, state.version()));
        found
            .map(|(key, state)| (key.clone(), state.clone()))
            .collect()
    }

    /// Removes the objects that are missing from a complete list, and returns their keys.
    pub(crate) fn remove_missing(&self, list: &CompleteList<K>) -> Vec<K> {
        let missing = Missing::from(list);
        let mut objects = self.write();
        objects.newest = objects.newest.max(list.version);
        let known = objects.known.iter();
        let known = known.map(|(key, state)| (key, state.version()));
        let unreadable = objects.unreadable.iter();
        let all = known.chain(unreadable.map(|(key, state)| (key, state.version)));
        let deleted = all.filter(|(key, version)| missing.has(key, *version));
        let deleted: Vec<_> = deleted.map(|(key, _)| key.clone()).collect();
        for key in &deleted {
            objects.forget(key);
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
    /// The version of the list.
    last: u64,
}

impl<K: Eq + Hash + Clone> Missing<K> {
    fn from(list: &CompleteList<K>) -> Self {
        Self {
            last: list.version,
            listed: list.objects.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// An object that was written after the list may be missing from it. An older one that is missing was deleted.
    fn has(&self, key: &K, version: u64) -> bool {
        version <= self.last && !self.listed.contains(key)
    }
}

/// Returns the version of the result of decoding an object.
pub(crate) fn version<S: State>(read: &Read<S>) -> u64 {
    match read {
        Ok(state) => state.version(),
        Err(unreadable) => unreadable.version,
    }
}

impl<K: Eq + Hash + Clone + Namespaced, S: State> Objects<K, S> {
    fn version(&self, key: &K) -> Option<u64> {
        let known = self.known.get(key).map(|known| known.version());
        known.max(self.unreadable.get(key).map(|known| known.version))
    }

    fn forget(&mut self, key: &K) {
        let known = self.known.remove(key);
        self.unreadable.remove(key);
        self.texts
            .forget(key, known.map_or(0, |known| known.text_bytes()));
    }

    fn put(&mut self, key: K, read: Read<S>) -> bool {
        let known = self.version(&key).max(self.deleted.get(&key).copied());
        let is_newer = match known {
            None => true,
            // Its text may have room now.
            Some(known) if known == version(&read) => self.texts.left_out.contains_key(&key),
            Some(known) => known < version(&read),
        };
        if is_newer {
            self.newest = self.newest.max(version(&read));
            self.forget(&key);
            match read {
                Ok(mut state) => {
                    self.texts.hold(&key, &mut state);
                    self.known.insert(key, Arc::new(state));
                }
                Err(why) => drop(self.unreadable.insert(key, Arc::new(why))),
            }
        }
        is_newer
    }

    /// Notes a deletion, and forgets old ones.
    fn note_deletion(&mut self, key: K, version: u64) {
        let now = Instant::now();
        while let Some((since, _, _)) = self.deletions.front()
            && (now.duration_since(*since) > DELETIONS_KEPT
                || self.deletions.len() >= MOST_DELETIONS)
        {
            if let Some((_, key, version)) = self.deletions.pop_front()
                && self.deleted.get(&key) == Some(&version)
            {
                self.deleted.remove(&key);
            }
        }
        self.newest = self.newest.max(version);
        self.deleted.insert(key.clone(), version);
        self.deletions.push_back((now, key, version));
    }
}

#[cfg(test)]
mod tests;

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

/// An object that was sent and could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub(super) version: u64,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// What could not be decoded, without any value of it.
    pub why: Box<str>,
}

impl State for Unreadable {
    fn version(&self) -> u64 {
        self.version
    }
}

impl Unreadable {
    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> String {
        self.version.to_string()
    }
}

/// An object as it was read.
pub(crate) type Read<S> = Result<S, Unreadable>;

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
    /// Those whose newest version can't be decoded: an older one says nothing of what they are now.
    unreadable: HashMap<K, Arc<Unreadable>>,
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
                unreadable: HashMap::new(),
                gone: HashMap::new(),
                went: VecDeque::new(),
            }),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K: Eq + Hash + Clone, S: State> Store<K, S> {
    /// The object, as far as it is known; none if its newest version can't be decoded.
    pub fn get(&self, key: &K) -> Option<Arc<S>> {
        self.read().there.get(key).cloned()
    }

    /// Why the object is not known, although it exists.
    pub fn unreadable(&self, key: &K) -> Option<Arc<Unreadable>> {
        self.read().unreadable.get(key).cloned()
    }

    /// How many objects exist that can't be decoded.
    pub fn count_unreadable(&self) -> usize {
        self.read().unreadable.len()
    }

    /// The keys of all objects, readable or not.
    pub fn keys(&self) -> Vec<K> {
        let objects = self.read();
        let keys = objects.there.keys().chain(objects.unreadable.keys());
        keys.cloned().collect()
    }

    /// All objects that can be decoded, with their keys.
    pub fn objects(&self) -> Vec<(K, Arc<S>)> {
        let objects = self.read();
        let known = objects.there.iter();
        known.map(|(key, it)| (key.clone(), it.clone())).collect()
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
        self.put_read(key, Ok(state))
    }

    /// The same for an object that may not have been decodable.
    pub(crate) fn put_read(&self, key: K, read: Read<S>) -> bool {
        self.write().put(key, read)
    }

    /// The newest version of all.
    pub fn newest(&self) -> u64 {
        let objects = self.read();
        let there = objects.there.values().map(|state| state.version());
        let unreadable = objects.unreadable.values().map(|state| state.version());
        there.chain(unreadable).max().unwrap_or(0)
    }

    /// Forgets the object that was deleted at this version, unless one of that name was made since.
    pub fn remove(&self, key: &K, version: u64) {
        let mut objects = self.write();
        if objects.version(key).is_some_and(|known| known <= version) {
            objects.there.remove(key);
            objects.unreadable.remove(key);
        }
        objects.went(key.clone(), version);
    }

    /// What a whole list shows to be gone, as it was last if that was readable; `before` is the newest version of when the list was
    /// asked for.
    pub(crate) fn missing(&self, listed: &[(K, Read<S>)], before: u64) -> Vec<(K, Arc<S>)> {
        let gone = Missing::from(listed, before);
        let objects = self.read();
        let there = objects.there.iter();
        let missing = there.filter(|(key, state)| gone.has(key, state.version()));
        missing
            .map(|(key, state)| (key.clone(), state.clone()))
            .collect()
    }

    /// Takes a whole list; `before` is the newest version of when it was asked for. Returns what is gone.
    pub(crate) fn replace(&self, listed: Vec<(K, Read<S>)>, before: u64) -> Vec<K> {
        let missing = Missing::from(&listed, before);
        let mut objects = self.write();
        for (key, read) in listed {
            objects.put(key, read);
        }
        let there = objects
            .there
            .extract_if(|key, state| missing.has(key, state.version()));
        let mut gone: Vec<_> = there.map(|(key, _)| key).collect();
        let unreadable = objects
            .unreadable
            .extract_if(|key, state| missing.has(key, state.version()));
        gone.extend(unreadable.map(|(key, _)| key));
        for key in &gone {
            objects.went(key.clone(), missing.last);
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

/// What is in no list.
struct Missing<K> {
    listed: HashSet<K>,
    /// The newest version that the list can have shown.
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

    /// What was written after the list was made is in no list yet. What was known before, and is in none, is gone.
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
        let there = self.there.get(key).map(|known| known.version());
        there.max(self.unreadable.get(key).map(|known| known.version))
    }

    fn put(&mut self, key: K, read: Read<S>) -> bool {
        let known = self.version(&key).max(self.gone.get(&key).copied());
        let newer = known.is_none_or(|known| known < version(&read));
        if newer {
            self.there.remove(&key);
            self.unreadable.remove(&key);
            match read {
                Ok(state) => drop(self.there.insert(key, Arc::new(state))),
                Err(why) => drop(self.unreadable.insert(key, Arc::new(why))),
            }
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
        let list = || vec![("stays", Ok(At(3))), ("new", Ok(At(4)))];
        let missing = store.missing(&list(), before);
        assert_eq!(missing, [("gone", At(1).into())]);
        assert_eq!(store.replace(list(), before), ["gone"]);
        assert!(store.is_synced());
        assert_eq!(*store.get(&"stays").unwrap(), At(3));
        assert_eq!(store.len(), 3);
    }

    #[test]
    fn what_went_while_nobody_watched_goes_even_where_it_was_the_newest() {
        let store = Store::default();
        store.put("stays", At(2));
        store.put("gone", At(7));
        let listed = vec![("stays", Ok(At(2)))];
        assert_eq!(store.replace(listed, store.newest()), ["gone"]);
        assert_eq!(store.replace(Vec::new(), store.newest()), ["stays"]);
        assert!(store.is_empty());
    }

    fn unreadable(version: u64) -> Read<At> {
        Err(Unreadable {
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
        // An answer that comes late is older still; a newer version is readable again.
        assert!(!store.put("a", At(5)) && store.put("a", At(7)));
        assert!(store.unreadable(&"a").is_none());
        assert_eq!(*store.get(&"a").unwrap(), At(7));
    }

    #[test]
    fn what_is_unreadable_goes_as_all_else_does() {
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

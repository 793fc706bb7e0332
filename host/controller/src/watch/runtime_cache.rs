//! A cache of parsed runtimes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    runtime::ReadRuntime,
    state::State as _,
    states::{RuntimeKey, RuntimeState},
};

/// The most bytes of text of a runtime that is cached. Most have a few KB.
pub(crate) const LARGEST_CACHED: usize = 32 << 10;

/// The most bytes of text of all cached runtimes. Parsed, they take up to 80 times as much memory.
const MOST_CACHED: usize = 512 << 10;

/// The small runtimes that were parsed last.
#[derive(Debug, Default)]
pub(crate) struct RuntimeCache(Mutex<CachedRuntimes>);

#[derive(Debug, Default)]
struct CachedRuntimes {
    by_key: HashMap<RuntimeKey, CachedRuntime>,
    bytes: usize,
    /// The number of uses so far.
    uses: u64,
}

#[derive(Debug)]
struct CachedRuntime {
    version: u64,
    bytes: usize,
    used: u64,
    read: Result<ReadRuntime, String>,
}

impl RuntimeCache {
    /// Returns the parsed runtime, if it is cached in that version.
    pub(crate) fn get(
        &self,
        key: &RuntimeKey,
        state: &RuntimeState,
    ) -> Option<Result<ReadRuntime, String>> {
        let mut cached = self.cached();
        cached.uses += 1;
        let uses = cached.uses;
        let found = cached.by_key.get_mut(key)?;
        found.used = uses;
        (found.version == state.version()).then(|| found.read.clone())
    }

    /// Caches a parsed runtime, unless it is large, and forgets those that do not exist any more.
    pub(crate) fn put(
        &self,
        key: RuntimeKey,
        state: &RuntimeState,
        read: Result<ReadRuntime, String>,
        exists: impl Fn(&RuntimeKey) -> bool,
    ) {
        let bytes = state.len();
        if bytes > LARGEST_CACHED {
            return;
        }
        let mut cached = self.cached();
        cached.by_key.retain(|key, _| exists(key));
        cached.bytes = cached.by_key.values().map(|it| it.bytes).sum();
        cached.uses += 1;
        let runtime = CachedRuntime {
            version: state.version(),
            bytes,
            used: cached.uses,
            read,
        };
        cached.bytes += bytes;
        if let Some(before) = cached.by_key.insert(key, runtime) {
            cached.bytes -= before.bytes;
        }
        while cached.bytes > MOST_CACHED {
            let oldest = cached.by_key.iter().min_by_key(|(_, it)| it.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            let removed = oldest.and_then(|key| cached.by_key.remove(&key));
            cached.bytes -= removed.map_or(cached.bytes, |removed| removed.bytes);
        }
    }

    fn cached(&self) -> MutexGuard<'_, CachedRuntimes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::watch::{Decode as _, RuntimeObject};

    fn state(version: u64, args: usize) -> RuntimeState {
        let container = json!({"name": "node", "image": "a", "args": vec![""; args]});
        let job = json!({"name": "node", "template": {"spec": {"template": {"spec": {"containers": [container]}}}}});
        let object = json!({
            "metadata": {"name": "a", "namespace": "b", "uid": "u"},
            "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
        });
        RuntimeObject::decode(&object.to_string(), version).unwrap()
    }

    fn key(number: usize) -> RuntimeKey {
        RuntimeKey {
            namespace: Some("b".into()),
            name: number.to_string().into(),
        }
    }

    fn size(cache: &RuntimeCache) -> (usize, usize) {
        let cached = cache.cached();
        let bytes = cached.by_key.values().map(|it| it.bytes).sum();
        assert_eq!(cached.bytes, bytes);
        (cached.by_key.len(), bytes)
    }

    #[test]
    fn only_some_small_runtimes_stay_parsed() {
        let cache = RuntimeCache::default();
        let put = |number, state: &RuntimeState| {
            cache.put(key(number), state, state.read(), |_| true);
        };
        let (small, large) = (state(1, 9_000), state(1, 450_000));
        assert!(small.len() < LARGEST_CACHED && large.len() < 1_000);
        put(0, &state(1, 20_000));
        assert_eq!(size(&cache), (0, 0));
        for number in 0..100 {
            put(number, &small);
            // It is used all the time.
            assert!(cache.get(&key(0), &small).unwrap().is_ok());
        }
        let (count, bytes) = size(&cache);
        assert!(bytes <= MOST_CACHED && count == MOST_CACHED / small.len());
        assert!(cache.get(&key(99), &small).is_some() && cache.get(&key(1), &small).is_none());
        // A changed runtime is parsed again, and replaces the old one.
        let changed = state(2, 9_000);
        assert!(cache.get(&key(0), &changed).is_none());
        put(0, &changed);
        assert!(cache.get(&key(0), &changed).is_some());
        assert_eq!(size(&cache), (count, bytes));
    }

    #[test]
    fn runtimes_that_are_gone_are_forgotten() {
        let cache = RuntimeCache::default();
        let state = state(1, 1);
        for number in 0..100 {
            // Each one replaces the one before.
            cache.put(key(number), &state, state.read(), |it| *it == key(number));
            assert_eq!(size(&cache), (1, state.len()));
        }
        assert!(cache.get(&key(98), &state).is_none() && cache.get(&key(99), &state).is_some());
    }

    #[test]
    fn too_large_runtimes_are_held_as_errors_only() {
        let error = state(1, 450_000).read().unwrap_err();
        assert_eq!(
            error,
            "has 1350283 bytes, but at most 1048576 fit in the snapshot of a TrainJob; move long scripts and lists into the image or a ConfigMap"
        );
        assert!(state(1, 340_000).read().is_ok());
    }
}

//! The lists that plugins look up, cached once for all TrainJobs.
//!
//! A list is requested once, and kept up to date by the watch of its kind. The list and the watch each have the sum of the versions of
//! their objects, so it does not matter which of them is ahead. Without a watch, a list serves only the requests that arrived before it was
//! fetched, so that no answer is older than its request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    content::Content,
    subject::{Listing, ObjectHashes, Stamp, SubjectState, WatchedKind},
};

/// How long an unused list is cached.
const UNUSED: Duration = Duration::from_secs(600);

/// The most memory of all cached lists. Lists beyond that are requested each time.
const MOST_HELD: usize = 128 << 20;

/// The lists of one kind: by namespace, or one of the cluster.
type ByNamespace = HashMap<Option<Arc<str>>, List>;

/// The cached lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    kinds: Mutex<HashMap<WatchedKind, KindLists>>,
}

#[derive(Debug, Default)]
struct KindLists {
    /// The objects that the watch has seen; `None` before its first list is complete.
    listing: Option<Listing>,
    lists: ByNamespace,
    /// The locks for requesting the lists.
    requesting: HashMap<Option<Arc<str>>, Arc<tokio::sync::Mutex<LastFailure>>>,
}

/// When a list could not be fetched for the last time, and why.
pub(crate) type LastFailure = Option<(Instant, String)>;

#[derive(Debug)]
struct List {
    objects: BTreeMap<Box<str>, Content>,
    seen: SubjectState,
    stamp: Stamp,
    size: usize,
    /// When it was requested from the API server.
    fetched: Instant,
    /// When it was last used.
    used: Instant,
}

impl List {
    fn of(contents: Vec<Content>, fetched: Instant) -> Self {
        let name = |content: &Content| Box::from(content.hashes().name);
        Self {
            seen: SubjectState::of(contents.iter().map(Content::hashes)),
            stamp: Stamp::of(contents.iter().map(Content::hashes)),
            size: contents.iter().map(|content| content.size).sum(),
            objects: contents.into_iter().map(|it| (name(&it), it)).collect(),
            fetched,
            used: Instant::now(),
        }
    }

    /// The objects as plugins get them, by name.
    fn values(&self) -> Vec<Arc<Value>> {
        let values = self.objects.values().map(|content| content.value.clone());
        values.flatten().collect()
    }
}

impl KindLists {
    /// The state of the namespace, or of the cluster, for comparison with the watch.
    fn stamp(&self, namespace: Option<&str>) -> Option<Stamp> {
        Some(self.listing.as_ref()?.stamp(namespace))
    }

    /// Whether a list may serve a request that arrived at that time.
    fn serves(&self, namespace: Option<&Arc<str>>, list: &List, requested: Instant) -> bool {
        let namespace = namespace.map(|namespace| &**namespace);
        list.fetched >= requested || self.stamp(namespace) == Some(list.stamp)
    }

    /// Drops outdated and unused lists.
    fn sweep(&mut self, now: Instant) {
        let mut lists = std::mem::take(&mut self.lists);
        lists.retain(|namespace, list| {
            let is_used = now.duration_since(list.used) < UNUSED;
            is_used && self.stamp(namespace.as_deref()) == Some(list.stamp)
        });
        self.lists = lists;
        self.requesting
            .retain(|_, requesting| Arc::strong_count(requesting) > 1);
    }

    /// Applies a change that the watch has seen to the list of the object. A list that was outdated stays outdated.
    fn update(
        &mut self,
        object: ObjectHashes<'_>,
        now: Option<Content>,
        change: impl FnOnce(&mut Listing) -> bool,
    ) -> bool {
        let before = self.stamp(object.namespace);
        let Some(listing) = &mut self.listing else {
            return true;
        };
        let counts = change(listing);
        let seen = listing.seen_of(object.namespace);
        let after = self.stamp(object.namespace);
        let namespace = object.namespace.map(Arc::from);
        if let Some(list) = self.lists.get_mut(&namespace)
            && let (Some(before), Some(after)) = (before, after)
        {
            if list.stamp == before {
                let replaced = match now {
                    Some(content) => {
                        list.size += content.size;
                        list.objects.insert(object.name.into(), content)
                    }
                    None => list.objects.remove(object.name),
                };
                list.size -= replaced.map_or(0, |content| content.size);
                (list.seen, list.stamp) = (seen, after);
                if list.size > MOST_HELD {
                    self.lists.remove(&namespace);
                }
            } else if list.stamp != after {
                self.lists.remove(&namespace);
            }
        }
        counts
    }
}

impl Lists {
    /// Returns the list, if it is cached and may serve a request that arrived at that time, with its state.
    pub(crate) fn get(
        &self,
        kind: &WatchedKind,
        namespace: Option<&Arc<str>>,
        requested: Instant,
    ) -> Option<(Vec<Arc<Value>>, SubjectState)> {
        let mut kinds = self.kinds();
        let kind_lists = kinds.get_mut(kind)?;
        let list = kind_lists.lists.get(&namespace.cloned())?;
        if !kind_lists.serves(namespace, list, requested) {
            return None;
        }
        let list = kind_lists.lists.get_mut(&namespace.cloned())?;
        list.used = Instant::now();
        Some((list.values(), list.seen))
    }

    /// Returns the lock for requesting the list: other callers wait and use its result.
    pub(crate) fn requesting(
        &self,
        kind: &WatchedKind,
        namespace: Option<&Arc<str>>,
    ) -> Arc<tokio::sync::Mutex<LastFailure>> {
        let mut kinds = self.kinds();
        let kind_lists = kinds.entry(kind.clone()).or_default();
        let requesting = kind_lists.requesting.entry(namespace.cloned());
        requesting.or_default().clone()
    }

    /// Caches a list that was requested at that time, unless it is too large.
    pub(crate) fn cache(
        &self,
        kind: &WatchedKind,
        namespace: Option<&Arc<str>>,
        fetched: Instant,
        objects: Vec<Content>,
    ) -> (Vec<Arc<Value>>, SubjectState) {
        let list = List::of(objects, fetched);
        let answer = (list.values(), list.seen);
        let mut kinds = self.kinds();
        let lists = kinds
            .values()
            .flat_map(|kind_lists| kind_lists.lists.values());
        let held: usize = lists.map(|list| list.size).sum();
        let kind_lists = kinds.entry(kind.clone()).or_default();
        let before = kind_lists.lists.remove(&namespace.cloned());
        if held - before.map_or(0, |list| list.size) + list.size <= MOST_HELD {
            kind_lists.lists.insert(namespace.cloned(), list);
        }
        answer
    }

    /// Notes that the watch of the kind restarts or ends.
    pub(crate) fn watch_ended(&self, kind: &WatchedKind) {
        if let Some(kind_lists) = self.kinds().get_mut(kind) {
            kind_lists.listing = None;
        }
    }

    /// Notes that the watch has seen all objects of the kind.
    pub(crate) fn watch_synced(&self, kind: &WatchedKind, listing: Listing) {
        let mut kinds = self.kinds();
        kinds.entry(kind.clone()).or_default().listing = Some(listing);
    }

    /// Notes that the watch has seen a new or changed object. Returns whether its content has changed.
    pub(crate) fn changed(&self, kind: &WatchedKind, content: &Content) -> bool {
        let mut kinds = self.kinds();
        let kind_lists = kinds.entry(kind.clone()).or_default();
        let object = content.hashes();
        kind_lists.update(object, Some(content.clone()), |listing| listing.add(object))
    }

    /// Notes that the watch has seen the deletion of an object.
    pub(crate) fn deleted(&self, kind: &WatchedKind, object: ObjectHashes<'_>) {
        let mut kinds = self.kinds();
        let kind_lists = kinds.entry(kind.clone()).or_default();
        kind_lists.update(object, None, |listing| listing.remove(object));
    }

    /// Drops all lists that are not kept up to date, or are unused.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.kinds().retain(|_, kind_lists| {
            kind_lists.sweep(now);
            kind_lists.listing.is_some()
                || !kind_lists.lists.is_empty()
                || !kind_lists.requesting.is_empty()
        });
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<WatchedKind, KindLists>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    fn kind() -> WatchedKind {
        WatchedKind {
            api_version: "v1".into(),
            kind: "Node".into(),
        }
    }

    fn node(name: &str, label: &str, version: u32) -> Content {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"label": label}, "resourceVersion": version.to_string()},
            "status": {"allocatable": {"cpu": version.to_string()}},
        });
        Content::of(
            &node.to_string(),
            &kind(),
            &crate::log_shares::LogShares::default(),
        )
        .unwrap()
    }

    fn listing(nodes: &[Content]) -> Listing {
        let mut listing = Listing::default();
        for node in nodes {
            listing.add(node.hashes());
        }
        listing
    }

    /// Caches a list that was fetched a moment ago.
    async fn hold(lists: &Lists, namespace: Option<&Arc<str>>, nodes: &[Content]) {
        let fetched = Instant::now();
        tokio::time::advance(MOMENT).await;
        lists.cache(&kind(), namespace, fetched, nodes.to_vec());
    }

    /// Returns the cached list for a request at this moment.
    fn held(lists: &Lists) -> Option<Vec<Value>> {
        let (values, _) = lists.get(&kind(), None, Instant::now())?;
        Some(values.iter().map(|value| (**value).clone()).collect())
    }

    fn expected(nodes: &[Content]) -> Option<Vec<Value>> {
        nodes
            .iter()
            .map(|node| node.value.as_deref().cloned())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_unwatched_list_serves_only_requests_from_before_it_was_fetched() {
        let lists = Lists::default();
        let requested = Instant::now();
        hold(&lists, None, &[node("a", "x", 1)]).await;
        assert!(lists.get(&kind(), None, requested).is_some());
        assert_eq!(held(&lists), None);
        lists.sweep();
        assert!(lists.kinds().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watched_list_is_cached_and_kept_up_to_date() {
        let lists = Lists::default();
        let [a, b] = [node("a", "x", 1), node("b", "x", 1)];
        hold(&lists, None, &[a.clone(), b.clone()]).await;
        lists.watch_synced(&kind(), listing(&[a.clone(), b.clone()]));
        tokio::time::advance(UNUSED / 2).await;
        lists.sweep();
        assert_eq!(held(&lists), expected(&[a.clone(), b.clone()]));
        // A changed status is in the list, but triggers no reconcile.
        let beat = node("b", "x", 2);
        assert!(!lists.changed(&kind(), &beat));
        assert_eq!(held(&lists), expected(&[a.clone(), beat]));
        let labelled = node("b", "y", 3);
        assert!(lists.changed(&kind(), &labelled));
        assert!(!lists.changed(&kind(), &labelled));
        let c = node("c", "x", 4);
        assert!(lists.changed(&kind(), &c));
        let all = [a.clone(), labelled.clone(), c.clone()];
        assert_eq!(held(&lists), expected(&all));
        lists.deleted(&kind(), a.hashes());
        assert_eq!(held(&lists), expected(&[labelled.clone(), c.clone()]));
        let (_, seen) = lists.get(&kind(), None, Instant::now()).unwrap();
        assert_eq!(seen, SubjectState::of([labelled.hashes(), c.hashes()]));
    }

    /// The watch is ahead of the list or behind it, so it is requested again.
    #[tokio::test(start_paused = true)]
    async fn a_list_that_differs_from_the_watch_is_requested_again() {
        let lists = Lists::default();
        let [a, b] = [node("a", "x", 1), node("b", "x", 2)];
        hold(&lists, None, std::slice::from_ref(&a)).await;
        lists.watch_synced(&kind(), listing(&[a.clone(), b.clone()]));
        assert_eq!(held(&lists), None);
        // A list that is ahead of the watch is up to date once the watch has caught up.
        let c = node("c", "x", 3);
        hold(&lists, None, &[a.clone(), b.clone(), c.clone()]).await;
        assert_eq!(held(&lists), None);
        lists.changed(&kind(), &c);
        assert_eq!(held(&lists), expected(&[a.clone(), b.clone(), c]));
        // A changed status also makes a list outdated.
        lists.watch_ended(&kind());
        lists.watch_synced(&kind(), listing(&[a, node("b", "x", 5), node("c", "x", 3)]));
        assert_eq!(held(&lists), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_restarted_watch_makes_the_list_outdated() {
        let lists = Lists::default();
        let nodes = [node("a", "x", 1)];
        hold(&lists, None, &nodes).await;
        lists.watch_synced(&kind(), listing(&nodes));
        assert!(held(&lists).is_some());
        lists.watch_ended(&kind());
        assert_eq!(held(&lists), None);
    }

    #[tokio::test(start_paused = true)]
    async fn unused_lists_are_dropped_and_the_cache_is_bounded() {
        let lists = Lists::default();
        let nodes = [node("a", "x", 1)];
        hold(&lists, None, &nodes).await;
        lists.watch_synced(&kind(), listing(&nodes));
        tokio::time::advance(UNUSED).await;
        lists.sweep();
        assert_eq!(held(&lists), None);

        // A list that grows while it is cached is dropped.
        hold(&lists, None, &nodes).await;
        lists.watch_synced(&kind(), listing(&nodes));
        let mut large = node("b", "x", 2);
        large.size = MOST_HELD;
        assert!(held(&lists).is_some());
        lists.changed(&kind(), &large);
        assert_eq!(held(&lists), None);
        lists.watch_synced(&kind(), listing(&nodes));

        let mut large = node("a", "x", 1);
        large.size = MOST_HELD / 2;
        hold(&lists, None, std::slice::from_ref(&large)).await;
        hold(&lists, None, std::slice::from_ref(&large)).await;
        assert!(held(&lists).is_some());
        large.size += 1;
        let other = Arc::from("other");
        hold(&lists, Some(&other), &[large]).await;
        let kinds = lists.kinds();
        assert_eq!(kinds.get(&kind()).unwrap().lists.len(), 1);
    }
}

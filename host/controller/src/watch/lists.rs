//! The lists that plugins look up, held once for all TrainJobs.
//!
//! A list is asked for once, and is kept up to date by the watch that wakes TrainJobs. Whether it still is what the watch has
//! seen is known by the sum of fingerprints that both have: so it does not matter which of the two was first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::content::Content;
use super::subject::{Kind, Listing, Part, Seen, Version};

/// For how long a list is used that no watch follows (yet). What is made of it is noted as always, so that a watch that begins
/// later wakes whoever saw something else.
const FRESH: Duration = Duration::from_secs(2);

/// The lists of one kind: by namespace, or one of the cluster.
type ByNamespace = HashMap<Option<Arc<str>>, List>;

/// All lists that are held.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    kinds: Mutex<HashMap<Kind, Followed>>,
}

#[derive(Debug, Default)]
struct Followed {
    /// What the watch has seen; none before it has seen all.
    listing: Option<Listing>,
    lists: ByNamespace,
    /// Held by whoever asks the API server for one of the lists.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct List {
    objects: BTreeMap<Box<str>, Content>,
    seen: Seen,
    asked: Instant,
}

impl Followed {
    /// What the watch has seen of the namespace, or of the cluster.
    fn seen(&self, namespace: Option<&Arc<str>>) -> Option<Seen> {
        let part = Part::All(namespace.cloned().unwrap_or_else(|| Arc::from("")));
        Some(self.listing.as_ref()?.seen(&part, namespace.is_some()))
    }

    /// Drops what is not up to date any more.
    fn sweep(&mut self, now: Instant) {
        let mut lists = std::mem::take(&mut self.lists);
        lists.retain(|namespace, list| match self.seen(namespace.as_ref()) {
            Some(seen) => seen == list.seen,
            None => now.duration_since(list.asked) < FRESH,
        });
        self.lists = lists;
    }

    /// Takes a change of an object, which the watch has seen, into the list that it is in. Only a list that was up to date
    /// before is afterwards.
    fn update(
        &mut self,
        version: Version<'_>,
        now: Option<Content>,
        change: impl FnOnce(&mut Listing) -> bool,
    ) -> bool {
        let namespace = version.namespace.map(Arc::from);
        let before = self.seen(namespace.as_ref());
        let Some(listing) = &mut self.listing else {
            return true;
        };
        let counts = change(listing);
        let after = self.seen(namespace.as_ref());
        if let Some(list) = self.lists.get_mut(&namespace)
            && let (Some(before), Some(after)) = (before, after)
        {
            if list.seen == before {
                match now {
                    Some(content) => _ = list.objects.insert(version.name.into(), content),
                    None => _ = list.objects.remove(version.name),
                }
                list.seen = after;
            } else if list.seen != after {
                self.lists.remove(&namespace);
            }
        }
        counts
    }
}

impl Lists {
    /// The list, if it is held and up to date, with what was found of it.
    pub(crate) fn get(
        &self,
        kind: &Kind,
        namespace: Option<&Arc<str>>,
    ) -> Option<(Vec<Arc<Value>>, Seen)> {
        let mut kinds = self.kinds();
        let followed = kinds.get_mut(kind)?;
        followed.sweep(Instant::now());
        let list = followed.lists.get(&namespace.cloned())?;
        Some((values(list.objects.values()), list.seen))
    }

    /// What is held by whoever asks for a list of the kind: the others wait, and use what came.
    pub(crate) fn asking(&self, kind: &Kind) -> Arc<tokio::sync::Mutex<()>> {
        self.kinds().entry(kind.clone()).or_default().asking.clone()
    }

    /// Holds a list that the API server has answered.
    pub(crate) fn hold(
        &self,
        kind: &Kind,
        namespace: Option<&Arc<str>>,
        objects: Vec<Content>,
    ) -> (Vec<Arc<Value>>, Seen) {
        let seen = Seen::of(objects.iter().map(Content::version));
        let values = values(&objects);
        let name = |content: &Content| Box::from(content.version().name);
        let list = List {
            objects: objects.into_iter().map(|it| (name(&it), it)).collect(),
            seen,
            asked: Instant::now(),
        };
        let mut kinds = self.kinds();
        let followed = kinds.entry(kind.clone()).or_default();
        followed.lists.insert(namespace.cloned(), list);
        (values, seen)
    }

    /// The watch of the kind begins anew, or ends.
    pub(crate) fn unfollowed(&self, kind: &Kind) {
        if let Some(followed) = self.kinds().get_mut(kind) {
            followed.listing = None;
        }
    }

    /// The watch has seen all objects of the kind.
    pub(crate) fn followed(&self, kind: &Kind, listing: Listing) {
        let mut kinds = self.kinds();
        let followed = kinds.entry(kind.clone()).or_default();
        followed.listing = Some(listing);
        followed.sweep(Instant::now());
    }

    /// The watch has seen an object that came or changed. Says whether that counts.
    pub(crate) fn changed(&self, kind: &Kind, content: &Content) -> bool {
        let mut kinds = self.kinds();
        let followed = kinds.entry(kind.clone()).or_default();
        let version = content.version();
        followed.update(version, Some(content.clone()), |listing| {
            listing.add(version)
        })
    }

    /// The watch has seen that an object went.
    pub(crate) fn deleted(&self, kind: &Kind, version: Version<'_>) {
        let mut kinds = self.kinds();
        let followed = kinds.entry(kind.clone()).or_default();
        followed.update(version, None, |listing| listing.remove(version));
    }

    /// Drops all lists that nothing keeps up to date.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.kinds().retain(|_, followed| {
            followed.sweep(now);
            let is_asked_for = Arc::strong_count(&followed.asking) > 1;
            followed.listing.is_some() || !followed.lists.is_empty() || is_asked_for
        });
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Kind, Followed>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The objects as plugins get them.
fn values<'c>(contents: impl IntoIterator<Item = &'c Content>) -> Vec<Arc<Value>> {
    let values = contents.into_iter().map(|content| content.value.clone());
    values.flatten().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::watch::content::Read;

    fn kind() -> Kind {
        Kind {
            api_version: "v1".into(),
            kind: "Node".into(),
        }
    }

    fn node(name: &str, label: &str, cpu: &str) -> Content {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"label": label}},
            "status": {"allocatable": {"cpu": cpu}},
        });
        Content::of(Read::of(&node.to_string()).unwrap(), &kind())
    }

    fn listing(nodes: &[Content]) -> Listing {
        let mut listing = Listing::default();
        for node in nodes {
            listing.add(node.version());
        }
        listing
    }

    fn held(lists: &Lists) -> Option<Vec<Value>> {
        let (values, _) = lists.get(&kind(), None)?;
        Some(values.iter().map(|value| (**value).clone()).collect())
    }

    fn expected(nodes: &[Content]) -> Option<Vec<Value>> {
        nodes
            .iter()
            .map(|node| node.value.as_deref().cloned())
            .collect()
    }

    /// Nobody follows it: it is used for a moment, and then asked for again.
    #[tokio::test(start_paused = true)]
    async fn a_list_that_nothing_follows_is_used_for_a_moment() {
        let lists = Lists::default();
        let nodes = [node("a", "x", "1")];
        assert!(held(&lists).is_none());
        lists.hold(&kind(), None, nodes.to_vec());
        assert_eq!(held(&lists), expected(&nodes));
        tokio::time::advance(FRESH).await;
        assert_eq!(held(&lists), None);
        lists.sweep();
        assert!(lists.kinds().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_followed_is_held_and_kept_up_to_date() {
        let lists = Lists::default();
        let [a, b] = [node("a", "x", "1"), node("b", "x", "1")];
        lists.hold(&kind(), None, vec![a.clone(), b.clone()]);
        lists.followed(&kind(), listing(&[a.clone(), b.clone()]));
        tokio::time::advance(FRESH * 1_000).await;
        lists.sweep();
        assert_eq!(held(&lists), expected(&[a.clone(), b.clone()]));
        // Its status is news for whoever asks, and wakes nobody.
        let beat = node("b", "x", "2");
        assert!(!lists.changed(&kind(), &beat));
        assert_eq!(held(&lists), expected(&[a.clone(), beat]));
        let labelled = node("b", "y", "2");
        assert!(lists.changed(&kind(), &labelled));
        assert!(!lists.changed(&kind(), &labelled));
        let c = node("c", "x", "1");
        assert!(lists.changed(&kind(), &c));
        assert_eq!(
            held(&lists),
            expected(&[a.clone(), labelled.clone(), c.clone()])
        );
        lists.deleted(&kind(), a.version());
        assert_eq!(held(&lists), expected(&[labelled, c]));
    }

    /// The watch knows more than the list, or less: it is asked for again.
    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_what_the_watch_has_seen_is_asked_for_again() {
        let lists = Lists::default();
        let [a, b] = [node("a", "x", "1"), node("b", "x", "1")];
        lists.hold(&kind(), None, vec![a.clone()]);
        lists.followed(&kind(), listing(&[a.clone(), b.clone()]));
        assert_eq!(held(&lists), None);
        lists.hold(&kind(), None, vec![a.clone()]);
        assert_eq!(held(&lists), None);
        // A list that is newer than what the watch has seen is up to date once the watch has seen it.
        let c = node("c", "x", "1");
        lists.hold(&kind(), None, vec![a.clone(), b.clone(), c.clone()]);
        lists.changed(&kind(), &c);
        assert_eq!(held(&lists), expected(&[a, b, c]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_begins_anew_says_nothing_of_the_list() {
        let lists = Lists::default();
        let nodes = [node("a", "x", "1")];
        lists.hold(&kind(), None, nodes.to_vec());
        lists.followed(&kind(), listing(&nodes));
        lists.unfollowed(&kind());
        tokio::time::advance(FRESH).await;
        assert_eq!(held(&lists), None);
    }
}

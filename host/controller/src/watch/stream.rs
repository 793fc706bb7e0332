//! A watch that feeds a store.

use std::fmt::Debug;
use std::hash::Hash;

use futures_util::{StreamExt, pin_mut};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::store::{State, Store};

/// An object as the API server sends it, and how it is kept.
pub trait Watched: Resource + Clone + DeserializeOwned + Debug + Send + 'static {
    /// How it is told apart.
    type Key: Eq + Hash + Clone + Send + Sync;
    /// What is kept of it.
    type State: State + Send + Sync;

    /// Its key and what is kept of it; none for an object that the API server would never send.
    fn slim(self) -> Option<(Self::Key, Self::State)>;
}

/// How long a watch lasts before it is opened anew: a connection that hangs is noticed only then.
const WATCH_SECONDS: u32 = 60;

/// Watches a kind for good, and calls `changed` for each object that appeared, changed or went, with the last of it where it was
/// seen to go. An error is logged and waited out; no other watch feels it.
pub async fn follow<W: Watched>(
    api: Api<W>,
    kind: &str,
    store: &Store<W::Key, W::State>,
    changed: impl Fn(&W::Key, Option<W::State>),
) {
    let events = watcher(api, watcher::Config::default().timeout(WATCH_SECONDS)).default_backoff();
    pin_mut!(events);
    let (mut listed, mut before) = (Vec::new(), 0);
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                before = store.newest();
            }
            Ok(watcher::Event::InitApply(object)) => listed.extend(object.slim()),
            Ok(watcher::Event::InitDone) => {
                let listed = std::mem::take(&mut listed);
                let keys: Vec<_> = listed.iter().map(|(key, _)| key.clone()).collect();
                let gone = store.replace(listed, before);
                keys.iter().chain(&gone).for_each(|key| changed(key, None));
            }
            Ok(watcher::Event::Apply(object)) => {
                if let Some((key, state)) = object.slim() {
                    store.put(key.clone(), state);
                    changed(&key, None);
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                if let Some((key, state)) = object.slim() {
                    store.remove(&key, state.version());
                    changed(&key, Some(state));
                }
            }
            Err(error) => tracing::warn!(kind, %error, "a watch failed; it starts again"),
        }
    }
}

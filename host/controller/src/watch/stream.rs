//! A watch that feeds a store.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, pin_mut, stream};
use kube::core::GroupVersionKind;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::kinds::{discover, waits};
use super::store::{State, Store};
use crate::reconcile::is_not_found;

/// An object as the API server sends it, and how it is kept.
pub trait Watched:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static
{
    /// How it is told apart.
    type Key: Eq + Hash + Clone + Send + Sync;
    /// What is kept of it.
    type State: State + Send + Sync;
    /// What to do where the kind is not served.
    const INSTALL: &'static str;

    /// Its key and what is kept of it; none for an object that the API server would never send.
    fn slim(self) -> Option<(Self::Key, Self::State)>;
}

/// How long a watch lasts before it is opened anew: a connection that hangs is noticed only then.
pub(crate) const WATCH_SECONDS: u32 = 60;

/// The longest pause before a watch that fails starts again.
const WATCH_AGAIN: Duration = Duration::from_secs(30);

/// The longest pause before discovery is asked again whether the controller's own kinds are served.
const ASK_EVERY: Duration = Duration::from_secs(4);

/// Watches a kind for good, and calls `changed` for each object that appeared, changed or went, with the last that was known
/// of it where it went. An error is logged and waited out; no other watch feels it. While the kind is not served, that is waited for, and
/// `absent` is told why; nothing once it is served.
pub(crate) async fn follow<W: Watched>(
    client: &Client,
    store: &Store<W::Key, W::State>,
    absent: impl Fn(Option<String>),
    changed: impl Fn(&W::Key, Option<Arc<W::State>>),
) {
    loop {
        until_served::<W>(client, &absent).await;
        watch(Api::<W>::all(client.clone()), store, &changed).await;
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Waits until the kind is served.
async fn until_served<W: Watched>(client: &Client, absent: impl Fn(Option<String>)) {
    let kind = GroupVersionKind::gvk(&W::group(&()), &W::version(&()), &W::kind(&()));
    let (mut pauses, mut told) = (waits(ASK_EVERY), false);
    loop {
        match discover(client, &kind).await {
            Ok(Some(_)) => {
                if told {
                    absent(None);
                    tracing::info!(kind = kind.kind, "the kind is served now");
                }
                return;
            }
            Ok(None) => {
                let why = format!(
                    "{} ({}) is not served; {}",
                    kind.kind,
                    kind.api_version(),
                    W::INSTALL
                );
                if !told {
                    tracing::warn!("{why}; the controller goes on by itself then");
                }
                told = true;
                absent(Some(why));
            }
            Err(error) => {
                tracing::warn!(kind = kind.kind, %error, "discovery failed; it is asked again");
            }
        }
        tokio::time::sleep(pauses.next().unwrap_or(ASK_EVERY)).await;
    }
}

/// Watches until the kind is gone.
async fn watch<W: Watched>(
    api: Api<W>,
    store: &Store<W::Key, W::State>,
    changed: impl Fn(&W::Key, Option<Arc<W::State>>),
) {
    let events = patient(watcher(
        api,
        watcher::Config::default().timeout(WATCH_SECONDS),
    ));
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
                keys.iter().for_each(|key| changed(key, None));
                gone.into_iter()
                    .for_each(|(key, last)| changed(&key, Some(last)));
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
                    changed(&key, Some(Arc::new(state)));
                }
            }
            Err(error) if is_gone(&error) => return,
            Err(error) => {
                tracing::warn!(kind = &*W::kind(&()), %error, "a watch failed; it starts again");
            }
        }
    }
}

/// The events of a watch, which starts again ever more slowly while it fails. That a list begins says nothing: kube's own backoff
/// would begin anew with it.
pub(crate) fn patient<K>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>>,
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> {
    let start = (Box::pin(events), waits(WATCH_AGAIN), None);
    stream::unfold(start, async |(mut events, mut pauses, pause)| {
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        let event = events.next().await?;
        let pause = match &event {
            Err(_) => Some(pauses.next().unwrap_or(WATCH_AGAIN)),
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
            Ok(_) => {
                pauses = waits(WATCH_AGAIN);
                None
            }
        };
        Some((event, (events, pauses, pause)))
    })
}

/// Whether the kind is served no more.
pub(crate) fn is_gone(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_not_found(error),
        watcher::Error::WatchError(status) => status.code == 404,
        watcher::Error::NoResourceVersion => false,
    }
}

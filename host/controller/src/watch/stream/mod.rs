//! A watch that feeds a store.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use kube::{
    Client,
    api::ListParams,
    core::{GroupVersionKind, Request},
};
use tokio::time::{Instant, sleep};

use super::{
    feed::{Feed, FeedError, FeedEvent, decoded},
    kinds::{backoff, discover},
    objects::{Decode, Keyed, read},
    state::State as _,
    store::{CompleteList, StateReplaced, Store, version},
};
use crate::wire::Undecodable;

/// The longest pause between two checks of whether the controller's own kinds are served.
const CHECK_OWN_KINDS_EVERY: Duration = Duration::from_secs(4);

/// How long a watch may fail before it is lost and the stores count as outdated.
const LOST_AFTER: Duration = Duration::from_secs(120);

/// The health of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It is working.
    Working,
    /// The kind is not served; with what to do.
    NotServed(String),
    /// It has failed for a long time; with the reason.
    Lost(String),
}

/// A deleted object.
#[derive(Debug)]
pub(crate) struct DeletedObject<S> {
    /// Its last known state.
    pub(crate) last: Arc<S>,
    /// Whether its deletion was observed in that state; otherwise it may have changed before.
    pub(crate) was_seen: bool,
}

/// A change of an object that a watch shows.
#[derive(Debug)]
pub(crate) enum Change<S> {
    /// It changed from one state to another.
    Updated {
        /// The state in the store before.
        before: Arc<S>,
        /// The state in the store now.
        after: Arc<S>,
    },
    /// It was deleted, and is about to be removed from the store.
    Deleted(DeletedObject<S>),
    /// Any other change: it was created, listed or removed, or one of its states cannot be decoded.
    Other,
}

/// The receiver of the events of a watch.
pub(crate) trait Follower<W: Decode> {
    /// Called when the watch begins, and when the API server sent objects, an event or a bookmark.
    fn heard(&self);
    /// Called when the health of the watch changes.
    fn health(&self, health: Health);
    /// Called when an object was created, changed or deleted.
    fn changed(&self, key: &W::Key, change: Change<W::State>);
}

/// Watches a kind until the state of the API server is replaced by an older one. Errors are logged and retried, and do not affect other
/// watches.
pub(crate) async fn follow<W: Decode>(
    client: &Client,
    store: &Store<W::Key, W::State>,
    follower: &impl Follower<W>,
) -> StateReplaced {
    let mut watch = Watch {
        store,
        follower,
        health: Health::Working,
        failing_since: None,
        listed: Vec::new(),
        before: 0,
    };
    follower.heard();
    loop {
        watch.wait_until_served(client).await;
        if let Err(replaced) = watch.follow_while_served(client).await {
            return replaced;
        }
        sleep(CHECK_OWN_KINDS_EVERY).await;
    }
}

/// Reads the answer to a call that returns a whole object.
///
/// # Errors
/// The call failed.
pub(crate) async fn answer<W: Decode>(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Option<Keyed<W>>, kube::Error> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    let text = client.request_text(request).await?;
    let item = decoded(text, read::<W>).await;
    let item = item.map_err(|ends| FeedError::from(ends).into_call())?;
    Ok(named::<W>(item))
}

/// Returns the requests for objects of a kind in a namespace.
pub(crate) fn objects<W: Decode>(namespace: &str) -> Request {
    Request::new(W::url_path(&(), Some(namespace)))
}

type Item<W> = Result<Keyed<W>, Undecodable>;

/// Returns the object; `None` if it has no name, which is logged.
fn named<W: Decode>(item: Item<W>) -> Option<Keyed<W>> {
    let logged = |why: &Undecodable| {
        tracing::error!(kind = &*W::kind(&()), %why, "the API server sent an object without a name or a version");
    };
    item.inspect_err(logged).ok()
}

/// Why a feed is ended.
enum End {
    /// Objects whose text was left out are listed again.
    HasRoom,
    NotServed,
    Replaced(StateReplaced),
}

struct Watch<'a, W: Decode, F> {
    store: &'a Store<W::Key, W::State>,
    follower: &'a F,
    health: Health,
    failing_since: Option<Instant>,
    /// The objects of the list that is being read, and the newest version before it.
    listed: Vec<(W::Key, u64)>,
    before: u64,
}

impl<W: Decode, F: Follower<W>> Watch<'_, W, F> {
    fn set_health(&mut self, health: Health) {
        if self.health != health {
            self.health = health.clone();
            self.follower.health(health);
        }
    }

    /// Notes that the watch is working.
    fn succeeded(&mut self) {
        self.failing_since = None;
        self.set_health(Health::Working);
    }

    fn failed(&mut self, what: &str, error: &dyn std::fmt::Display) {
        let kind = W::kind(&());
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        tracing::warn!(kind = &*kind, %error, "{what} failed; retrying");
        if since.elapsed() >= LOST_AFTER {
            self.set_health(Health::Lost(format!(
                "the watch has failed for more than {} s: {error}",
                LOST_AFTER.as_secs()
            )));
        }
    }

    /// Waits until the kind is served.
    async fn wait_until_served(&mut self, client: &Client) {
        let kind = GroupVersionKind::gvk(&W::group(&()), &W::version(&()), &W::kind(&()));
        let mut pauses = backoff(CHECK_OWN_KINDS_EVERY);
        loop {
            match discover(client, &kind).await {
                Ok(Some(_)) => {
                    if matches!(self.health, Health::NotServed(_)) {
                        tracing::info!(kind = kind.kind, "the kind is served now");
                        self.succeeded();
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
                    if !matches!(self.health, Health::NotServed(_)) {
                        tracing::warn!("{why}; the controller continues once it is served");
                    }
                    self.set_health(Health::NotServed(why));
                }
                Err(error) => self.failed("discovery", &error),
            }
            sleep(pauses.next().unwrap_or(CHECK_OWN_KINDS_EVERY)).await;
        }
    }

    /// Watches until the kind is no longer served.
    async fn follow_while_served(&mut self, client: &Client) -> Result<(), StateReplaced> {
        let path = W::url_path(&(), None);
        let feed = Feed::new(client.clone(), path, ListParams::default(), read::<W>);
        loop {
            match feed.run(|event| self.event(event)).await {
                End::HasRoom => {}
                End::NotServed => return Ok(()),
                End::Replaced(replaced) => return Err(replaced),
            }
        }
    }

    fn event(&mut self, event: FeedEvent<Item<W>>) -> ControlFlow<End> {
        // That a watch was accepted does not show that its events arrive.
        if !matches!(
            event,
            FeedEvent::ListBegins | FeedEvent::Watching | FeedEvent::Failed(_)
        ) {
            self.follower.heard();
        }
        match event {
            FeedEvent::ListBegins => {
                self.listed.clear();
                self.before = self.store.newest();
            }
            FeedEvent::Listed(items) => {
                for (key, read) in items.into_iter().filter_map(named::<W>) {
                    self.listed.push((key.clone(), version(&read)));
                    self.store.put_read(key, read);
                }
            }
            FeedEvent::ListEnds(version) => {
                let list = CompleteList {
                    objects: std::mem::take(&mut self.listed),
                    // The versions of objects are numbers, or they could not be read.
                    version: version.parse().unwrap_or(self.before),
                    before: self.before,
                };
                if let Err(replaced) = self.listed(&list) {
                    return ControlFlow::Break(End::Replaced(replaced));
                }
            }
            FeedEvent::Watching => {
                self.succeeded();
                if self.store.has_room_again() {
                    return ControlFlow::Break(End::HasRoom);
                }
            }
            FeedEvent::Changed(item) => self.changed(item),
            FeedEvent::Deleted(item) => self.deleted(item),
            FeedEvent::Bookmark => {}
            FeedEvent::Failed(error) if error.is_not_served() => {
                return ControlFlow::Break(End::NotServed);
            }
            FeedEvent::Failed(error) => self.failed("a watch", &error),
        }
        ControlFlow::Continue(())
    }

    fn listed(&mut self, list: &CompleteList<W::Key>) -> Result<(), StateReplaced> {
        self.store.check(list)?;
        // Noted before they are removed, as in `deleted`.
        for (key, last) in self.store.missing(list) {
            let was_seen = false;
            let gone = Change::Deleted(DeletedObject { last, was_seen });
            self.follower.changed(&key, gone);
        }
        let gone = self.store.remove_missing(list);
        self.succeeded();
        let listed = list.objects.iter().map(|(key, _)| key);
        for key in listed.chain(&gone) {
            self.follower.changed(key, Change::Other);
        }
        Ok(())
    }

    fn changed(&mut self, item: Item<W>) {
        if let Some((key, read)) = named::<W>(item) {
            let before = self.store.get(&key);
            self.store.put_read(key.clone(), read);
            let change = match (before, self.store.get(&key)) {
                (Some(before), Some(after)) => Change::Updated { before, after },
                _ => Change::Other,
            };
            self.follower.changed(&key, change);
        }
    }

    fn deleted(&mut self, item: Item<W>) {
        let Some((key, read)) = named::<W>(item) else {
            return;
        };
        match read {
            Ok(last) => {
                let (version, last) = (last.version(), Arc::new(last));
                let was_seen = true;
                // Noted before it is removed, so that its last state is known once it is missing.
                let gone = Change::Deleted(DeletedObject { last, was_seen });
                self.follower.changed(&key, gone);
                self.store.remove(&key, version);
                self.follower.changed(&key, Change::Other);
            }
            Err(last) => {
                self.store.remove(&key, last.version());
                self.follower.changed(&key, Change::Other);
            }
        }
    }
}

#[cfg(test)]
mod tests;

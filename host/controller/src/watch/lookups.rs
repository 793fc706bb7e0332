//! The watches of objects that plugins look up. Each one runs while a TrainJob that has not started needs it, fails independently of the
//! others, and triggers a reconcile of the TrainJobs that saw another state.

use std::{collections::HashMap, convert::Infallible, ops::ControlFlow, sync::Arc, time::Duration};

use kube::{
    Client, Resource as _,
    api::{DynamicObject, ListParams},
    discovery::Scope,
};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{
    content::{Content, content_of},
    feed::{Feed, FeedError, FeedEvent},
    interests::{Interests, Requeue},
    kinds::{Kinds, Served, backoff},
    lists::Lists,
    subject::{ChangeSource, Listing, WatchedKind},
};
use crate::{log_shares::LogShares, queue::Queue, rbac::WatchScope};

/// The longest pause between two checks of whether a kind is served.
const CHECK_LOOKED_UP_KINDS_EVERY: Duration = Duration::from_secs(30);

/// How often unused lists are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Watches the sources that TrainJobs are interested in.
pub(crate) struct LookupWatches {
    pub(crate) client: Client,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) interests: Arc<Interests>,
    pub(crate) lists: Arc<Lists>,
    pub(crate) log: Arc<LogShares>,
    pub(crate) queue: Queue,
}

impl LookupWatches {
    /// Watches until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) -> Infallible {
        let mut running = HashMap::new();
        loop {
            let needed = self.interests.needed();
            running.retain(|source, _| needed.contains(source));
            for source in needed {
                let start =
                    || AbortOnDropHandle::new(tokio::spawn(self.clone().follow(source.clone())));
                running.entry(source.clone()).or_insert_with(start);
            }
            let changed = timeout(SWEEP_EVERY, self.interests.need_changed());
            let _either = changed.await;
            self.lists.sweep();
        }
    }

    async fn follow(self: Arc<Self>, source: ChangeSource) {
        let Some(kind) = source.kind() else {
            return;
        };
        let mut pauses = backoff(CHECK_LOOKED_UP_KINDS_EVERY);
        loop {
            let (resource, scope) = self.wait_until_served(&source, kind).await;
            match &source {
                ChangeSource::Objects(_, watched) => {
                    let path = DynamicObject::url_path(&resource, None);
                    let read = content_of(kind, self.log.clone());
                    let feed = Feed::new(self.client.clone(), path, params(watched), read);
                    let namespaced = matches!(scope, Scope::Namespaced);
                    let kind_watch = KindWatch {
                        source: &source,
                        kind,
                        watched,
                        namespaced,
                    };
                    if self.watch(feed, kind_watch).await {
                        pauses = backoff(CHECK_LOOKED_UP_KINDS_EVERY);
                    }
                }
                _ => self.follow_while_served(&source, kind).await,
            }
            tracing::info!(
                kind = &*kind.kind,
                api_version = &*kind.api_version,
                "a kind that plugins look up is no longer served"
            );
            // A kind that discovery shows but that cannot be listed is retried with backoff.
            sleep(pauses.next().unwrap_or(CHECK_LOOKED_UP_KINDS_EVERY)).await;
        }
    }

    /// Polls discovery until the kind is served.
    async fn wait_until_served(&self, source: &ChangeSource, kind: &WatchedKind) -> Served {
        let mut pauses = backoff(CHECK_LOOKED_UP_KINDS_EVERY);
        loop {
            if let Some(served) = self.check_served(source, kind).await.flatten() {
                return served;
            }
            sleep(pauses.next().unwrap_or(CHECK_LOOKED_UP_KINDS_EVERY)).await;
        }
    }

    /// Polls discovery until the kind is no longer served.
    async fn follow_while_served(&self, source: &ChangeSource, kind: &WatchedKind) {
        loop {
            sleep(CHECK_LOOKED_UP_KINDS_EVERY).await;
            if let Some(None) = self.check_served(source, kind).await {
                return;
            }
        }
    }

    /// Asks discovery whether the kind is served; `None` on an error. Triggers a reconcile of the TrainJobs for which this has changed.
    async fn check_served(
        &self,
        source: &ChangeSource,
        kind: &WatchedKind,
    ) -> Option<Option<Served>> {
        match self.kinds.refresh(&kind.group_version_kind()).await {
            Ok(served) => {
                self.wake(self.interests.note_served(source, served.is_some()));
                Some(served)
            }
            Err(error) => {
                tracing::debug!(kind = &*kind.kind, %error, "discovery failed; retrying");
                None
            }
        }
    }

    /// Watches until the kind is no longer served. Returns whether it ever was.
    async fn watch(&self, feed: Feed<Option<Content>>, kind_watch: KindWatch<'_>) -> bool {
        let KindWatch { source, kind, .. } = kind_watch;
        let _unfollowed = Unfollowed {
            lists: &self.lists,
            kind_watch,
        };
        let (mut listing, mut was_there, mut failing) = (Listing::default(), false, false);
        let end = feed.run(|event| {
            match event {
                FeedEvent::ListBegins => {
                    kind_watch.end(&self.lists);
                    listing = Listing::default();
                }
                FeedEvent::Listed(objects) => {
                    for object in objects.into_iter().flatten() {
                        listing.add(object.hashes());
                    }
                }
                FeedEvent::ListEnds(_) => {
                    (was_there, failing) = (true, false);
                    let listing = std::mem::take(&mut listing);
                    let namespaced = kind_watch.namespaced;
                    let requeues = self.interests.note_listed(source, namespaced, &listing);
                    kind_watch.begin(&self.lists, listing);
                    self.wake(requeues);
                }
                FeedEvent::Changed(Some(object)) => self.wake(self.changed(kind_watch, &object)),
                FeedEvent::Deleted(Some(object)) => {
                    if kind_watch.is_whole() {
                        self.lists.deleted(kind, object.hashes());
                    }
                    self.wake(self.interests.note_deleted(source, object.hashes()));
                }
                // No API server sends an object without metadata.
                FeedEvent::Watching
                | FeedEvent::Changed(None)
                | FeedEvent::Deleted(None)
                | FeedEvent::Bookmark => {}
                FeedEvent::Failed(error) if error.is_not_served() => return ControlFlow::Break(()),
                FeedEvent::Failed(error) => {
                    note_failure(source, &error, std::mem::replace(&mut failing, true));
                }
            }
            ControlFlow::Continue(())
        });
        end.await;
        was_there
    }

    fn changed(&self, kind_watch: KindWatch<'_>, content: &Content) -> Vec<Requeue> {
        // For a watch of one object, its TrainJobs have recorded what they saw.
        let counts = !kind_watch.is_whole() || self.lists.changed(kind_watch.kind, content);
        if counts {
            self.interests
                .note_changed(kind_watch.source, content.hashes())
        } else {
            Vec::new()
        }
    }

    fn wake(&self, requeues: Vec<Requeue>) {
        for Requeue { key, after } in requeues {
            self.queue.add_after(key, after);
        }
    }
}

/// Logs why a watch failed: as a warning if it worked before.
fn note_failure(source: &ChangeSource, error: &FeedError, still: bool) {
    if still {
        tracing::debug!(?source, %error, "a watch of objects that plugins look up still fails");
    } else {
        tracing::warn!(
            ?source, %error,
            "a watch of objects that plugins look up failed; retrying. `trainyard rbac` prints the permissions that it needs"
        );
    }
}

/// The source of a watch.
#[derive(Clone, Copy)]
struct KindWatch<'a> {
    source: &'a ChangeSource,
    kind: &'a WatchedKind,
    watched: &'a WatchScope,
    /// Whether its objects have namespaces.
    namespaced: bool,
}

impl KindWatch<'_> {
    /// Whether it watches all objects of the kind, and so keeps its lists up to date.
    const fn is_whole(self) -> bool {
        matches!(self.watched, WatchScope::Kind)
    }

    fn begin(self, lists: &Lists, listing: Listing) {
        if self.is_whole() {
            lists.watch_synced(self.kind, listing);
        }
    }

    fn end(self, lists: &Lists) {
        if self.is_whole() {
            lists.watch_ended(self.kind);
        }
    }
}

/// Notes that a kind is no longer watched, however the watch ends.
struct Unfollowed<'a> {
    lists: &'a Lists,
    kind_watch: KindWatch<'a>,
}

impl Drop for Unfollowed<'_> {
    fn drop(&mut self) {
        self.kind_watch.end(self.lists);
    }
}

/// Returns the selectors of a watch.
fn params(watched: &WatchScope) -> ListParams {
    match watched {
        WatchScope::Kind => ListParams::default(),
        WatchScope::Named(name) => ListParams::default().fields(&format!("metadata.name={name}")),
    }
}

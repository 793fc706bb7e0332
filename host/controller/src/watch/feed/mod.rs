//! Lists a kind in pages, and then watches its changes.
//!
//! Unlike kube's watcher, it splits answers as text and decodes each object separately (see [`crate::wire`]), so that an object that cannot
//! be decoded does not block the others. Pages are sized in bytes, and failed pages are retried.
//!
//! A watch that ends at the requested time resumes at its version. If it ends early, or the API server is too busy, the API server may be
//! stopping, and be restarted with the state of a backup, in which the version means something else. So a list of one object first shows
//! whether versions are still as high. After a lost connection, the whole kind is listed again.

mod error;
mod lines;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use backon::ExponentialBackoff;
pub use error::FeedError;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::Request,
};
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{Instant, sleep},
};

pub use lines::WatchLines;

use super::kinds::backoff;
use crate::{
    client::{is_transient, watching},
    wire::{Identity, Malformed, Page, WatchLine},
};

/// How long a watch lasts before it is restarted. A connection that hangs is noticed only then.
const WATCH_SECONDS: u32 = 60;

/// How much longer a watch may last than requested.
const WATCH_GRACE: Duration = Duration::from_secs(10);

/// How much earlier than requested a watch may end, because clocks differ.
const EARLY: Duration = Duration::from_secs(1);

/// A watch that ends sooner without an event has failed.
const SHORT: Duration = Duration::from_secs(1);

/// The longest pause before a retry.
const AGAIN: Duration = Duration::from_secs(30);

/// The number of objects of the first page, when their size is not known, and the most of any page.
const FIRST_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;

/// The target size of a page.
const PAGE_BYTES: usize = 8 << 20;

/// How many times a page is requested before the list restarts, and by what its limit is divided each time. The last try asks for so few
/// objects that they fit into an answer even if each is as large as an API server allows.
const PAGE_TRIES: u32 = 4;
const FEWER: u32 = 5;

/// The most memory of a list that is read as a whole.
const LARGEST_LIST: usize = 128 << 20;

/// Larger texts are decoded on a blocking thread.
const DECODED_AT_ONCE: usize = 64 << 10;

/// An event of a feed.
#[derive(Debug)]
pub(crate) enum FeedEvent<T> {
    /// A list begins and replaces any earlier one.
    ListBegins,
    /// Objects of the list.
    Listed(Vec<T>),
    /// The list is complete; with its version.
    ListEnds(String),
    /// A watch for changes since the list has started.
    Watching,
    /// An object was created or changed.
    Changed(T),
    /// An object was deleted.
    Deleted(T),
    /// Nothing has changed.
    Bookmark,
    /// A call failed, and is retried with backoff.
    Failed(FeedError),
}

/// Parses the text of an object.
type Parser<T> = Arc<dyn Fn(&str) -> T + Send + Sync>;

/// Lists and watches a kind. `read` parses each object.
pub(crate) struct Feed<T> {
    client: Client,
    request: Request,
    params: ListParams,
    read: Parser<T>,
}

impl<T: Send + 'static> Feed<T> {
    /// Returns a feed of the objects at that path that match the selectors.
    pub(crate) fn new(
        client: Client,
        path: impl Into<String>,
        params: ListParams,
        read: impl Fn(&str) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            client,
            request: Request::new(path),
            params,
            read: Arc::new(read),
        }
    }

    /// Lists and watches until `show`, which gets each event, breaks off. Errors are retried with backoff.
    pub(crate) async fn run<E>(&self, show: impl FnMut(FeedEvent<T>) -> ControlFlow<E>) -> E {
        let mut run = RunningFeed {
            feed: self,
            show,
            pauses: backoff(AGAIN),
            version: None,
            is_sure: false,
        };
        loop {
            let failed = match run.list_or_watch().await {
                Ok(()) => continue,
                Err(Stop::End(end)) => return end,
                Err(Stop::Failed(error)) => error,
            };
            run.is_sure = false;
            run.version = run.version.filter(|_| failed.leaves_version());
            if let ControlFlow::Break(end) = (run.show)(FeedEvent::Failed(failed)) {
                return end;
            }
            sleep(run.pauses.next().unwrap_or(AGAIN)).await;
        }
    }

    /// Requests a page. A failed page is requested again with fewer objects.
    async fn page(&self, next: Option<&String>, limit: &mut u32) -> Result<String, FeedError> {
        let mut pauses = backoff(AGAIN);
        let mut tries = 1;
        loop {
            match self.request(next, *limit).await {
                Ok(text) => return Ok(text),
                Err(error) if tries < PAGE_TRIES && is_transient(&error) => {
                    tracing::debug!(path = self.request.url_path, %error, tries, "a page failed; retrying");
                    tries += 1;
                    *limit = (*limit / FEWER).max(1);
                    sleep(pauses.next().unwrap_or(AGAIN)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn request(&self, next: Option<&String>, limit: u32) -> Result<String, kube::Error> {
        let params = ListParams {
            limit: Some(limit),
            continue_token: next.cloned(),
            ..self.params.clone()
        };
        let request = self.request.list(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await
    }

    /// Whether the API server still has a version.
    async fn has(&self, version: &str) -> Result<bool, FeedError> {
        let text = self.request(None, 1).await?;
        let now = decoded(text, |text| Page::split(text).map(|page| page.version)).await??;
        let number = |version: &str| version.parse::<u64>().ok();
        let now = now.as_deref().and_then(number);
        Ok(now.is_some() && now >= number(version))
    }

    async fn watch(&self, version: &str) -> Result<WatchLines, FeedError> {
        let params = WatchParams {
            label_selector: self.params.label_selector.clone(),
            field_selector: self.params.field_selector.clone(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = self.request.watch(&params, version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        // The API server measures the requested time from a later moment.
        let until = Instant::now() + Duration::from_secs(WATCH_SECONDS.into()) + WATCH_GRACE;
        let body = self.client.request_stream(watching(request)).await?;
        Ok(WatchLines::new(body, until))
    }
}

/// A running feed.
struct RunningFeed<'f, T, S> {
    feed: &'f Feed<T>,
    show: S,
    pauses: ExponentialBackoff,
    /// The version to watch from; `None` before a list, and after an error that requires another one.
    version: Option<String>,
    /// Whether the API server certainly has it.
    is_sure: bool,
}

/// Why a run stops.
enum Stop<E> {
    /// `show` broke off.
    End(E),
    /// A call failed.
    Failed(FeedError),
}

impl<E, F: Into<FeedError>> From<F> for Stop<E> {
    fn from(error: F) -> Self {
        Self::Failed(error.into())
    }
}

impl<T: Send + 'static, E, S: FnMut(FeedEvent<T>) -> ControlFlow<E>> RunningFeed<'_, T, S> {
    fn show(&mut self, event: FeedEvent<T>) -> Result<(), Stop<E>> {
        // The other events do not show that an earlier error is over.
        if let FeedEvent::ListEnds(_)
        | FeedEvent::Changed(_)
        | FeedEvent::Deleted(_)
        | FeedEvent::Bookmark = event
        {
            self.pauses = backoff(AGAIN);
        }
        match (self.show)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(end) => Err(Stop::End(end)),
        }
    }

    async fn list_or_watch(&mut self) -> Result<(), Stop<E>> {
        let Some(version) = self.version.clone() else {
            return self.list().await;
        };
        if self.is_sure || self.feed.has(&version).await? {
            return self.watch(&version).await;
        }
        self.version = None;
        Ok(())
    }

    async fn list(&mut self) -> Result<(), Stop<E>> {
        self.show(FeedEvent::ListBegins)?;
        let (mut next, mut limit) = (None, FIRST_PAGE);
        loop {
            let text = self.feed.page(next.as_ref(), &mut limit).await?;
            let (read, bytes) = (self.feed.read.clone(), text.len());
            let page = spawn_blocking(move || {
                let page = Page::split(&text)?;
                let objects: Vec<T> = page.items.into_iter().map(&*read).collect();
                Ok::<_, Malformed>((objects, page.version, page.next))
            });
            let (objects, version, more) = page.await??;
            let mean = bytes / objects.len().max(1);
            limit = u32::try_from(PAGE_BYTES / mean.max(1))
                .unwrap_or(LARGEST_PAGE)
                .clamp(1, LARGEST_PAGE);
            let version = version.ok_or(FeedError::NoVersion)?;
            self.show(FeedEvent::Listed(objects))?;
            if more.is_none() {
                (self.version, self.is_sure) = (Some(version.clone()), true);
                return self.show(FeedEvent::ListEnds(version));
            }
            next = more;
        }
    }

    /// Watches from a version until the watch ends.
    async fn watch(&mut self, version: &str) -> Result<(), Stop<E>> {
        let mut lines = self.feed.watch(version).await?;
        self.show(FeedEvent::Watching)?;
        let (started, mut has_events) = (Instant::now(), false);
        while let Some(line) = lines.next().await? {
            has_events = true;
            self.line(&line).await?;
        }
        self.is_sure = lines.is_over();
        if !has_events && started.elapsed() < SHORT {
            return Err(FeedError::Short.into());
        }
        Ok(())
    }

    /// Shows the event of a line.
    async fn line(&mut self, line: &str) -> Result<(), Stop<E>> {
        let line = WatchLine::split(line)?;
        let object = line.object();
        let version = Identity::of(object).and_then(|identity| identity.resource_version);
        let shows: fn(T) -> FeedEvent<T> = match line.kind.as_str() {
            "ADDED" | "MODIFIED" => FeedEvent::Changed,
            "DELETED" => FeedEvent::Deleted,
            "ERROR" => {
                let status = serde_json::from_str(object).unwrap_or_default();
                return Err(FeedError::Ended(Box::new(status)).into());
            }
            // A bookmark only has a version.
            _ => {
                self.version = version.or(self.version.take());
                return self.show(FeedEvent::Bookmark);
            }
        };
        let read = self.feed.read.clone();
        let object = decoded(object.to_owned(), move |text| read(text)).await?;
        self.version = version.or(self.version.take());
        self.show(shows(object))
    }
}

impl<T: Send + 'static> Feed<Option<T>> {
    /// Returns what is kept of the objects of one list, which takes that much memory each.
    ///
    /// # Errors
    /// A page failed after all retries, or the list is too large.
    pub(crate) async fn all(&self, size: impl Fn(&T) -> usize) -> Result<Vec<T>, FeedError> {
        let (mut objects, mut held) = (Vec::new(), 0);
        let listed = self.run(|event| {
            match event {
                FeedEvent::Listed(page) => {
                    let before = objects.len();
                    objects.extend(page.into_iter().flatten());
                    held += objects.iter().skip(before).map(&size).sum::<usize>();
                    if held > LARGEST_LIST {
                        return ControlFlow::Break(Err(FeedError::TooLarge));
                    }
                }
                FeedEvent::ListEnds(_) => return ControlFlow::Break(Ok(())),
                FeedEvent::Failed(error) => return ControlFlow::Break(Err(error)),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        listed.await?;
        Ok(objects)
    }
}

/// Parses the text of an object without blocking the runtime.
///
/// # Errors
/// The process ends, or parsing panicked.
pub(crate) async fn decoded<T: Send + 'static>(
    text: String,
    read: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T, JoinError> {
    if text.len() <= DECODED_AT_ONCE {
        return Ok(read(&text));
    }
    spawn_blocking(move || read(&text)).await
}

#[cfg(test)]
mod tests;

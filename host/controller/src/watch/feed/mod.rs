//! Lists a kind in pages, and then watches its changes.
//!
//! Unlike kube's watcher, it splits answers as text and decodes each object separately (see [`crate::wire`]), so that an object that cannot
//! be decoded does not block the others. Pages are sized in bytes, and failed pages are retried.
//!
//! A watch that ends at the requested time resumes at its version. If it ends early, or the API server is too busy, the API server may be
//! stopping, and be restarted with the state of a backup, in which the version means something else. So a list of one object first shows
//! whether versions are still as high. After a lost connection, the whole kind is listed again.

mod error;
mod watching;

use std::{sync::Arc, time::Duration};

use backon::ExponentialBackoff;
pub(crate) use error::FeedError;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::Request,
};
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{Instant, sleep},
};

use watching::{Lines, WatchEvent, Watching};

use super::kinds::backoff;
use crate::{
    client::{is_transient, watching},
    wire::{Malformed, Page},
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
}

/// Parses the text of an object.
type Parser<T> = Arc<dyn Fn(&str) -> T + Send + Sync>;

/// Lists and watches a kind forever, with backoff after errors. `read` parses each object.
pub(crate) struct Feed<T> {
    client: Client,
    request: Request,
    params: ListParams,
    read: Parser<T>,
    state: State,
    pauses: ExponentialBackoff,
    pause: Option<Duration>,
}

enum State {
    Start,
    Paging(Paging),
    ToCheck { version: String },
    ToWatch { version: String },
    Watching(Watching),
}

/// The state of a list.
struct Paging {
    next: Option<String>,
    limit: u32,
    version: Option<String>,
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
            state: State::Start,
            pauses: backoff(AGAIN),
            pause: None,
        }
    }

    /// Returns the next event. After an error it retries with backoff. If the future is dropped, no object is lost: at worst, all are
    /// listed again.
    ///
    /// # Errors
    /// A call failed.
    pub(crate) async fn next(&mut self) -> Result<FeedEvent<T>, FeedError> {
        if let Some(pause) = self.pause.take() {
            sleep(pause).await;
        }
        let news = self.step().await;
        match &news {
            Err(_) => self.pause = Some(self.pauses.next().unwrap_or(AGAIN)),
            // These events do not show that an earlier error is over.
            Ok(FeedEvent::ListBegins | FeedEvent::Listed(_) | FeedEvent::Watching) => {}
            Ok(_) => self.pauses = backoff(AGAIN),
        }
        news
    }

    /// Lists again instead of continuing the watch.
    pub(crate) fn list_again(&mut self) {
        self.state = State::Start;
    }

    async fn step(&mut self) -> Result<FeedEvent<T>, FeedError> {
        match std::mem::replace(&mut self.state, State::Start) {
            State::Start => {
                self.state = State::Paging(Paging {
                    next: None,
                    limit: FIRST_PAGE,
                    version: None,
                });
                Ok(FeedEvent::ListBegins)
            }
            State::Paging(paging) => self.page(paging).await,
            State::ToCheck { version } => self.check(version).await,
            State::ToWatch { version } => {
                let watching = self.watch(&version).await;
                if watching.as_ref().is_err_and(FeedError::is_busy) {
                    self.state = State::ToCheck { version };
                }
                self.state = State::Watching(watching?);
                Ok(FeedEvent::Watching)
            }
            State::Watching(watching) => self.event(watching).await,
        }
    }

    /// Returns the next page, or the end of the list.
    async fn page(&mut self, mut paging: Paging) -> Result<FeedEvent<T>, FeedError> {
        if let (None, Some(version)) = (&paging.next, paging.version.take()) {
            let listed = version.clone();
            self.state = State::ToWatch { version };
            return Ok(FeedEvent::ListEnds(listed));
        }
        let text = self.fetch(&mut paging).await?;
        let read = self.read.clone();
        let bytes = text.len();
        let (objects, version, next) = spawn_blocking(move || {
            let page = Page::split(&text)?;
            let objects: Vec<T> = page.items.into_iter().map(&*read).collect();
            Ok::<_, Malformed>((objects, page.version, page.next))
        })
        .await??;
        let mean = bytes / objects.len().max(1);
        paging.limit = u32::try_from(PAGE_BYTES / mean.max(1))
            .unwrap_or(LARGEST_PAGE)
            .clamp(1, LARGEST_PAGE);
        paging.version = Some(version.ok_or(FeedError::NoVersion)?);
        paging.next = next;
        self.state = State::Paging(paging);
        Ok(FeedEvent::Listed(objects))
    }

    /// Requests a page. A failed page is requested again with fewer objects.
    async fn fetch(&mut self, paging: &mut Paging) -> Result<String, FeedError> {
        let mut pauses = backoff(AGAIN);
        let mut tries = 1;
        loop {
            let params = ListParams {
                limit: Some(paging.limit),
                continue_token: paging.next.clone(),
                ..self.params.clone()
            };
            let request = self.request.list(&params);
            let request = request.map_err(kube::Error::BuildRequest)?;
            match self.client.request_text(request).await {
                Ok(text) => return Ok(text),
                Err(error) if tries < PAGE_TRIES && is_transient(&error) => {
                    tracing::debug!(path = self.request.url_path, %error, tries, "a page failed; retrying");
                    tries += 1;
                    paging.limit = (paging.limit / FEWER).max(1);
                    sleep(pauses.next().unwrap_or(AGAIN)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Continues at the version, or lists again if the API server does not have it any more.
    async fn check(&mut self, version: String) -> Result<FeedEvent<T>, FeedError> {
        let params = ListParams {
            limit: Some(1),
            ..self.params.clone()
        };
        let request = self.request.list(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = match self
            .client
            .request_text(request)
            .await
            .map_err(FeedError::from)
        {
            Err(error) if error.is_busy() => {
                self.state = State::ToCheck { version };
                return Err(error);
            }
            answer => answer?,
        };
        let now = decoded(text, |text| Page::split(text).map(|page| page.version)).await??;
        let number = |version: &str| version.parse::<u64>().ok();
        let now = now.as_deref().and_then(number);
        if now.is_some() && now >= number(&version) {
            self.state = State::ToWatch { version };
        }
        Box::pin(self.step()).await
    }

    async fn watch(&mut self, version: &str) -> Result<Watching, FeedError> {
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
        Ok(Watching {
            version: version.to_owned(),
            lines: Lines {
                body: Box::pin(body),
                until,
            },
            started: Instant::now(),
            showed: false,
        })
    }

    /// Returns the next event, or continues at the version at which the watch ended.
    async fn event(&mut self, mut watching: Watching) -> Result<FeedEvent<T>, FeedError> {
        loop {
            let event = match watching.next().await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    let is_short = !watching.showed && watching.started.elapsed() < SHORT;
                    let is_over = watching.lines.is_over();
                    let version = watching.version;
                    self.state = if is_over {
                        State::ToWatch { version }
                    } else {
                        State::ToCheck { version }
                    };
                    return if is_short {
                        Err(FeedError::Short)
                    } else {
                        Box::pin(self.step()).await
                    };
                }
                Err(error) => {
                    if error.is_busy() {
                        let version = watching.version;
                        self.state = State::ToCheck { version };
                    }
                    return Err(error);
                }
            };
            watching.showed = true;
            let WatchEvent {
                kind,
                version,
                object,
            } = event;
            let news = match kind.as_str() {
                "ADDED" | "MODIFIED" => Some(FeedEvent::Changed(self.read(object).await?)),
                "DELETED" => Some(FeedEvent::Deleted(self.read(object).await?)),
                // A bookmark only has a version.
                _ => None,
            };
            if let Some(version) = version {
                watching.version = version;
            }
            match news {
                Some(news) => {
                    self.state = State::Watching(watching);
                    return Ok(news);
                }
                None => self.pauses = backoff(AGAIN),
            }
        }
    }

    async fn read(&mut self, object: String) -> Result<T, FeedError> {
        let read = self.read.clone();
        Ok(decoded(object, move |text| read(text)).await?)
    }
}

impl<T: Send + 'static> Feed<Option<T>> {
    /// Returns what is kept of the objects of one list, which takes that much memory each.
    ///
    /// # Errors
    /// A page failed after all retries, or the list is too large.
    pub(crate) async fn all(mut self, size: impl Fn(&T) -> usize) -> Result<Vec<T>, FeedError> {
        let (mut objects, mut held) = (Vec::new(), 0);
        loop {
            match self.next().await? {
                FeedEvent::Listed(page) => {
                    let page = page.into_iter().flatten();
                    let page: Vec<T> = page.collect();
                    held += page.iter().map(&size).sum::<usize>();
                    if held > LARGEST_LIST {
                        return Err(FeedError::TooLarge);
                    }
                    objects.extend(page);
                }
                FeedEvent::ListEnds(_) => return Ok(objects),
                _ => {}
            }
        }
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

//! What is in the cluster of a kind, and then every change: a list in pages, and the watches that follow it.
//!
//! Unlike kube's watcher it splits answers as text and has each object decoded by itself (see [`crate::wire`]), so that one that
//! can't be decoded holds up no other; pages have a size in bytes, and one that fails is asked for again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBackoff;
use futures_util::{AsyncBufRead, AsyncBufReadExt as _};
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status};
use thiserror::Error;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, timeout_at};

use super::kinds::waits;
use crate::client::{is_transient, watching};
use crate::wire::{Identity, Malformed, Page, WatchLine};

/// How long a watch lasts before it is opened anew: a connection that hangs is noticed only then.
const WATCH_SECONDS: u32 = 60;

/// How much longer a watch may last than it was asked to.
const WATCH_GRACE: Duration = Duration::from_secs(10);

/// A watch that ends sooner, and showed nothing, has failed.
const SHORT: Duration = Duration::from_secs(1);

/// The longest pause before what fails starts again.
const AGAIN: Duration = Duration::from_secs(30);

/// The objects of the first page, while nobody knows how large they are, and the most of any page.
const FIRST_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;

/// The size that a page should have.
const PAGE_BYTES: usize = 8 << 20;

/// How often a page is asked for before the list starts again.
const PAGE_TRIES: u32 = 4;

/// The most bytes of one list that are taken as a whole.
const LARGEST_LIST: usize = 64 << 20;

/// What is larger is decoded on a thread that may be blocked.
const DECODED_AT_ONCE: usize = 64 << 10;

/// What a feed brings.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// A list begins; what was listed before counts no more.
    ListBegins,
    /// Objects of the list.
    Listed(Vec<T>),
    /// The list is whole.
    ListEnds,
    /// The changes since the list are watched.
    Watching,
    /// An object appeared or changed.
    Changed(T),
    /// An object was deleted.
    Deleted(T),
}

/// Why a feed brings nothing just now. It starts again by itself.
#[derive(Debug, Error)]
pub(crate) enum FeedError {
    /// A list or the start of a watch failed.
    #[error("{0}")]
    Call(#[from] kube::Error),
    /// An answer is not JSON.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The API server sent no version to watch from.
    #[error("the API server sent a list without a resourceVersion")]
    NoVersion,
    /// The API server ended the watch with an error.
    #[error("the API server ended the watch: {} (code {})", .0.message, .0.code)]
    Ended(Box<Status>),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    /// The connection hangs.
    #[error("the API server did not end the watch in time")]
    Hangs,
    /// The API server ends each watch at once.
    #[error("the API server ended the watch as soon as it began")]
    Short,
    /// A list that was to be taken as a whole is too large for that.
    #[error("the list has more than {} MiB; nothing can be made of it before there are fewer or smaller objects", LARGEST_LIST >> 20)]
    TooLarge,
    /// The host ends.
    #[error("decoding was given up: {0}")]
    Decoding(#[from] JoinError),
}

impl FeedError {
    /// Whether the kind is not served any more.
    pub(crate) fn is_not_served(&self) -> bool {
        self.code() == Some(404)
    }

    /// The same as an error of the client.
    pub(crate) fn into_call(self) -> kube::Error {
        match self {
            Self::Call(error) => error,
            error => kube::Error::Service(Box::new(error)),
        }
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Call(kube::Error::Api(status)) | Self::Ended(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether a watch can start again where it stopped.
    fn resumes(&self) -> bool {
        match self {
            Self::Call(error) => is_transient(error),
            Self::Ended(status) => matches!(status.code, 429 | 503 | 504),
            Self::Broken(_) | Self::Hangs | Self::Short => true,
            Self::Malformed(_) | Self::NoVersion | Self::TooLarge | Self::Decoding(_) => false,
        }
    }
}

/// How an object becomes what a feed brings.
type Reads<T> = Arc<dyn Fn(&str) -> T + Send + Sync>;

/// Lists and watches a kind for good, ever more slowly while that fails. Each object is read by `read`, from its text.
pub(crate) struct Feed<T> {
    client: Client,
    request: Request,
    params: ListParams,
    read: Reads<T>,
    state: State,
    /// The bytes of the list under way, or of the last one.
    listed: usize,
    pauses: ExponentialBackoff,
    pause: Option<Duration>,
}

enum State {
    Start,
    Paging(Paging),
    ToWatch { version: String },
    Watching(Watching),
}

/// A list under way.
struct Paging {
    next: Option<String>,
    limit: u32,
    version: Option<String>,
}

struct Watching {
    version: String,
    lines: Lines,
    started: Instant,
    showed: bool,
}

/// The lines of a watch.
struct Lines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    until: Instant,
}

/// An event of a watch.
struct Event {
    kind: String,
    version: Option<String>,
    object: String,
}

impl<T: Send + 'static> Feed<T> {
    /// Of the objects at that path of the API server, those that the selectors name.
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
            listed: 0,
            pauses: waits(AGAIN),
            pause: None,
        }
    }

    /// The objects of one list.
    ///
    /// # Errors
    /// A page failed, however often it was asked for, or the list is too large.
    pub(crate) async fn all(mut self) -> Result<Vec<T>, FeedError> {
        let mut objects = Vec::new();
        loop {
            match self.next().await? {
                News::Listed(_) if self.listed > LARGEST_LIST => return Err(FeedError::TooLarge),
                News::Listed(page) => objects.extend(page),
                News::ListEnds => return Ok(objects),
                _ => {}
            }
        }
    }

    /// What comes next. After an error it starts again, after a pause that grows. Dropping the future loses no object: at worst
    /// all are listed again.
    ///
    /// # Errors
    /// Why nothing comes just now.
    pub(crate) async fn next(&mut self) -> Result<News<T>, FeedError> {
        if let Some(pause) = self.pause.take() {
            sleep(pause).await;
        }
        let news = self.step().await;
        match &news {
            Err(_) => self.pause = Some(self.pauses.next().unwrap_or(AGAIN)),
            // None of them says that what failed before goes well now.
            Ok(News::ListBegins | News::Listed(_) | News::Watching) => {}
            Ok(_) => self.pauses = waits(AGAIN),
        }
        news
    }

    async fn step(&mut self) -> Result<News<T>, FeedError> {
        match std::mem::replace(&mut self.state, State::Start) {
            State::Start => {
                self.state = State::Paging(Paging {
                    next: None,
                    limit: FIRST_PAGE,
                    version: None,
                });
                self.listed = 0;
                Ok(News::ListBegins)
            }
            State::Paging(paging) => self.page(paging).await,
            State::ToWatch { version } => {
                let watching = self.watch(&version).await;
                if watching.as_ref().is_err_and(FeedError::resumes) {
                    self.state = State::ToWatch { version };
                }
                self.state = State::Watching(watching?);
                Ok(News::Watching)
            }
            State::Watching(watching) => self.event(watching).await,
        }
    }

    /// The next page, or the end of the list.
    async fn page(&mut self, mut paging: Paging) -> Result<News<T>, FeedError> {
        if let (None, Some(version)) = (&paging.next, paging.version.take()) {
            self.state = State::ToWatch { version };
            return Ok(News::ListEnds);
        }
        let text = self.fetch(&mut paging).await?;
        let read = self.read.clone();
        let bytes = text.len();
        self.listed += bytes;
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
        Ok(News::Listed(objects))
    }

    /// The text of a page. One that fails is asked for again, with fewer objects.
    async fn fetch(&mut self, paging: &mut Paging) -> Result<String, FeedError> {
        let mut pauses = waits(AGAIN);
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
                    tracing::debug!(path = self.request.url_path, %error, tries, "a page failed; it is asked for again");
                    tries += 1;
                    paging.limit = (paging.limit / 2).max(1);
                    sleep(pauses.next().unwrap_or(AGAIN)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
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
        let body = self.client.request_stream(watching(request)).await?;
        let started = Instant::now();
        Ok(Watching {
            version: version.to_owned(),
            lines: Lines {
                body: Box::pin(body),
                until: started + Duration::from_secs(WATCH_SECONDS.into()) + WATCH_GRACE,
            },
            started,
            showed: false,
        })
    }

    /// The next event, or the next watch where this one ended.
    async fn event(&mut self, mut watching: Watching) -> Result<News<T>, FeedError> {
        loop {
            let event = match watching.next().await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    let is_short = !watching.showed && watching.started.elapsed() < SHORT;
                    let version = watching.version;
                    self.state = State::ToWatch { version };
                    return if is_short {
                        Err(FeedError::Short)
                    } else {
                        Box::pin(self.step()).await
                    };
                }
                Err(error) => {
                    if error.resumes() {
                        let version = watching.version;
                        self.state = State::ToWatch { version };
                    }
                    return Err(error);
                }
            };
            watching.showed = true;
            let Event {
                kind,
                version,
                object,
            } = event;
            let news = match kind.as_str() {
                "ADDED" | "MODIFIED" => Some(News::Changed(self.read(object).await?)),
                "DELETED" => Some(News::Deleted(self.read(object).await?)),
                // A bookmark tells of nothing but the version.
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
                None => self.pauses = waits(AGAIN),
            }
        }
    }

    async fn read(&mut self, object: String) -> Result<T, FeedError> {
        let read = self.read.clone();
        Ok(decoded(object, move |text| read(text)).await?)
    }
}

/// Reads the text of one object, where that blocks nothing else.
///
/// # Errors
/// The host ends, or panicked.
pub(crate) async fn decoded<T: Send + 'static>(
    text: String,
    read: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T, JoinError> {
    if text.len() <= DECODED_AT_ONCE {
        return Ok(read(&text));
    }
    spawn_blocking(move || read(&text)).await
}

impl Watching {
    /// The next event; none at the end.
    async fn next(&mut self) -> Result<Option<Event>, FeedError> {
        let Some(line) = self.lines.next().await? else {
            return Ok(None);
        };
        let WatchLine { kind, object } = WatchLine::split(&line)?;
        if kind == "ERROR" {
            let status = serde_json::from_str(object).unwrap_or_default();
            return Err(FeedError::Ended(Box::new(status)));
        }
        let version = Identity::of(object).and_then(|identity| identity.resource_version);
        Ok(Some(Event {
            kind,
            version,
            object: object.to_owned(),
        }))
    }
}

impl Lines {
    /// The next whole line; none at the end.
    async fn next(&mut self) -> Result<Option<String>, FeedError> {
        loop {
            let mut line = Vec::new();
            let read = timeout_at(self.until, self.body.read_until(b'\n', &mut line)).await;
            match read.map_err(|_| FeedError::Hangs)? {
                Ok(_) if line.trim_ascii().is_empty() && line.ends_with(b"\n") => {}
                // A line that breaks off is sent again by the next watch.
                Ok(_) if !line.ends_with(b"\n") => return Ok(None),
                Ok(_) => {
                    let line = String::from_utf8(line);
                    return line.map(Some).map_err(|_| Malformed::default().into());
                }
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! What the users of a TrainJob are told by Events.
//!
//! They are core/v1 Events: the Kubeflow SDK sorts by firstTimestamp and skips Events without one,
//! such as those of events.k8s.io/v1 that kube's own recorder writes. An Event that comes again within
//! 10 minutes is counted on the first one, and the writes for an object are limited, both as in
//! client-go. Nothing here ever delays or fails a reconcile.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable as _};
use governor::{DefaultKeyedRateLimiter, Quota};
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::Instant,
};

use crate::{client::is_transient, metrics::Metrics};

/// The most Events that wait to be written.
const WAITING: usize = 1_024;

/// The most bytes of a message; the API server takes 1,024.
const MESSAGE_BYTES: usize = 950;

/// The most Events for what is wrong with an object at one time.
const MESSAGES: usize = 4;

/// The most bytes of the object's name in the Event's own.
const NAME_BYTES: usize = 230;

/// For how long an Event that comes again is counted on the first one.
const WINDOW: Duration = Duration::from_secs(600);

/// The most Events that are remembered for that.
const REMEMBERED: usize = 4_096;

/// Writes for one object: so many at once, then one a period.
const BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(24);
const PERIOD: Duration = Duration::from_secs(300);

/// Who reports Events.
#[derive(Debug, Clone)]
pub struct Reporter {
    /// The component, such as `trainjob_controller`.
    pub component: String,
    /// The process, such as the pod's name.
    pub instance: String,
}

/// Takes Events from reconciles. Clones share one writer.
#[derive(Debug, Clone)]
pub struct Recorder {
    waiting: mpsc::Sender<Told>,
    metrics: Arc<Metrics>,
}

/// Writes the Events that the recorders took; [`EventWriter::run`] it in a task of its own.
pub struct EventWriter {
    waiting: mpsc::Receiver<Told>,
    client: Client,
    reporter: Reporter,
    metrics: Arc<Metrics>,
    memory: Memory,
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWriter")
            .field("reporter", &self.reporter)
            .finish_non_exhaustive()
    }
}

/// One thing to tell.
#[derive(Debug)]
struct Told {
    regarding: ObjectReference,
    reason: String,
    action: String,
    message: String,
}

/// A recorder, and the writer that it needs.
#[must_use]
pub fn recorder(
    client: Client,
    reporter: Reporter,
    metrics: Arc<Metrics>,
) -> (Recorder, EventWriter) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let writer = EventWriter {
        waiting: receiver,
        client,
        reporter,
        metrics: Arc::clone(&metrics),
        memory: Memory::new(),
    };
    let recorder = Recorder {
        waiting: sender,
        metrics,
    };
    (recorder, writer)
}

impl Recorder {
    /// Tells what went wrong with an object: `reason` in CamelCase for machines, `action` what was
    /// being done, `sentences` for people; these are cleaned and cut, and stand in one Event if they fit. Never waits; what can't be
    /// written is dropped and counted.
    pub fn warn(
        &self,
        regarding: &ObjectReference,
        reason: &str,
        action: &str,
        sentences: &[impl AsRef<str>],
    ) {
        for message in messages(sentences) {
            let told = Told {
                regarding: regarding.clone(),
                reason: reason.to_owned(),
                action: action.to_owned(),
                message,
            };
            match self.waiting.try_send(told) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => self.metrics.event_dropped("full"),
                Err(TrySendError::Closed(_)) => self.metrics.event_dropped("closed"),
            }
        }
    }
}

/// The messages of as few Events as hold the sentences whole. The last one says how many have no place any more.
fn messages(sentences: &[impl AsRef<str>]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let sentence = cut(trainyard_model::text::clean(sentence.as_ref()));
        let count = messages.len();
        match messages.last_mut() {
            Some(last) if last.len() + "; ".len() + sentence.len() <= MESSAGE_BYTES => {
                last.push_str("; ");
                last.push_str(&sentence);
            }
            Some(last) if count == MESSAGES => {
                let left = sentences.len() - at;
                last.push_str(&format!("; and {left} more"));
                break;
            }
            _ => messages.push(sentence),
        }
    }
    messages
}

/// A text as long as an Event may hold.
fn cut(text: String) -> String {
    if text.len() <= MESSAGE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MESSAGE_BYTES);
    format!("{} ...", text.get(..end).unwrap_or_default())
}

impl EventWriter {
    /// Writes until all recorders are gone and what they took is written.
    pub async fn run(mut self) {
        while let Some(told) = self.waiting.recv().await {
            let namespace = namespace(&told.regarding);
            let name = told.regarding.name.as_deref().unwrap_or_default();
            match self.write(&told).await {
                Ok(()) => {}
                Err(NotWritten::Spam) => {
                    self.metrics.event_dropped("spam");
                    tracing::debug!(
                        namespace,
                        name,
                        told.reason,
                        "an Event beyond the limit of its object is not written"
                    );
                }
                Err(NotWritten::Refused(error)) => {
                    self.metrics.event_dropped("error");
                    tracing::warn!(namespace, name, told.reason, message = told.message, %error, "an Event can't be written");
                }
            }
        }
    }

    async fn write(&mut self, told: &Told) -> Result<(), NotWritten> {
        let key = self.memory.key(told);
        let known = self.memory.repeat(&key, Instant::now());
        if !self.memory.allows(&key.object) {
            return Err(NotWritten::Spam);
        }
        if let Some((name, count)) = known
            && self.count(told, &name, count).await?
        {
            return Ok(());
        }
        let name = self.create(told).await?;
        self.memory.remember(key, name, Instant::now());
        Ok(())
    }

    fn events(&self, told: &Told) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace(&told.regarding))
    }

    /// Counts an Event on one that was written before, unless that one is gone.
    async fn count(&self, told: &Told, name: &str, count: i32) -> Result<bool, kube::Error> {
        let events = self.events(told);
        let patch = Patch::Merge(serde_json::json!({
            "count": count,
            "lastTimestamp": Time(Timestamp::now()),
        }));
        let parameters = PatchParams::default();
        match retried(|| events.patch(name, &parameters, &patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, told: &Told) -> Result<String, kube::Error> {
        let event = self.event(told, Timestamp::now());
        let name = event.metadata.name.clone().unwrap_or_default();
        let events = self.events(told);
        let parameters = PostParams::default();
        match retried(|| events.create(&parameters, &event)).await {
            Ok(_) => Ok(name),
            // An answer was lost, and the Event is there.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name),
            Err(error) => Err(error),
        }
    }

    fn event(&self, told: &Told, now: Timestamp) -> Event {
        let regarding = told.regarding.name.as_deref().unwrap_or_default();
        let cut = regarding.floor_char_boundary(NAME_BYTES);
        let regarding = regarding.get(..cut).unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{regarding}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace(&told.regarding).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: told.regarding.clone(),
            type_: Some("Warning".to_owned()),
            reason: Some(told.reason.clone()),
            action: Some(told.action.clone()),
            message: Some(told.message.clone()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            source: Some(EventSource {
                component: Some(self.reporter.component.clone()),
                host: None,
            }),
            reporting_component: Some(self.reporter.component.clone()),
            reporting_instance: Some(self.reporter.instance.clone()),
            ..Event::default()
        }
    }
}

/// Why an Event was not written.
enum NotWritten {
    /// Its object has had too many.
    Spam,
    /// The API server did not take it.
    Refused(kube::Error),
}

impl From<kube::Error> for NotWritten {
    fn from(error: kube::Error) -> Self {
        Self::Refused(error)
    }
}

/// The namespace of an object's Events; those of objects without one are in `default`.
fn namespace(regarding: &ObjectReference) -> &str {
    regarding.namespace.as_deref().unwrap_or("default")
}

/// Makes a call up to four times while the API server is busy or away.
async fn retried<T, F>(call: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    call.retry(ExponentialBuilder::new().with_jitter())
        .when(is_transient)
        .await
}

/// Which Events were written lately, and for which objects how many.
#[derive(Debug)]
struct Memory {
    hasher: RandomState,
    written: HashMap<Same, Written>,
    limits: DefaultKeyedRateLimiter<Arc<str>>,
}

/// What makes two Events the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Same {
    object: Arc<str>,
    /// Of the reason and the message, which may be long.
    hash: u64,
}

#[derive(Debug)]
struct Written {
    name: String,
    count: i32,
    last: Instant,
}

impl Memory {
    fn new() -> Self {
        let quota = Quota::with_period(PERIOD).map(|quota| quota.allow_burst(BURST));
        Self {
            hasher: RandomState::new(),
            written: HashMap::new(),
            limits: DefaultKeyedRateLimiter::hashmap(
                quota.unwrap_or_else(|| Quota::per_minute(BURST)),
            ),
        }
    }

    fn key(&self, told: &Told) -> Same {
        let regarding = &told.regarding;
        let object = match &regarding.uid {
            Some(uid) => uid.as_str().into(),
            None => format!(
                "{} {} {}",
                regarding.kind.as_deref().unwrap_or_default(),
                regarding.namespace.as_deref().unwrap_or_default(),
                regarding.name.as_deref().unwrap_or_default(),
            )
            .into(),
        };
        let hash = self.hasher.hash_one((&told.reason, &told.message));
        Same { object, hash }
    }

    /// Counts an Event that was written within the window: its name, and how often it came.
    fn repeat(&mut self, key: &Same, now: Instant) -> Option<(String, i32)> {
        let written = self.written.get_mut(key)?;
        if now.duration_since(written.last) > WINDOW {
            self.written.remove(key);
            return None;
        }
        written.count = written.count.saturating_add(1);
        written.last = now;
        Some((written.name.clone(), written.count))
    }

    fn allows(&self, object: &Arc<str>) -> bool {
        if self.limits.len() > REMEMBERED {
            self.limits.retain_recent();
        }
        self.limits.check_key(object).is_ok()
    }

    fn remember(&mut self, key: Same, name: String, now: Instant) {
        if self.written.len() >= REMEMBERED {
            self.written
                .retain(|_, written| now.duration_since(written.last) <= WINDOW);
        }
        // Still too many: what comes again is a new Event, not a count.
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        let count = 1;
        let last = now;
        self.written.insert(key, Written { name, count, last });
    }
}

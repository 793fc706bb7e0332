//! Events about TrainJobs.
//!
//! They are core/v1 Events: the Kubeflow SDK sorts by firstTimestamp and skips Events without one, such as the events.k8s.io/v1 Events of
//! kube's recorder. As in client-go, an Event that is repeated within 10 minutes increments the count of the first one, and the writes for
//! an object are rate-limited. Recording never delays or fails a reconcile.

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

/// The most pending Events.
const WAITING: usize = 1_024;

/// The most bytes of a message; the API server accepts 1,024.
const MESSAGE_BYTES: usize = 950;

/// The most Events for one report.
const MESSAGES: usize = 4;

/// The most bytes of the object's name in the Event's name.
const NAME_BYTES: usize = 230;

/// How long a repeated Event increments the count of the first one.
const WINDOW: Duration = Duration::from_secs(600);

/// The most Events that are remembered for this.
const REMEMBERED: usize = 4_096;

/// The rate limit of one object: a burst, and then one write per period.
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

/// Records Events. Clones share one writer.
#[derive(Debug, Clone)]
pub struct Recorder {
    waiting: mpsc::Sender<PendingEvent>,
    metrics: Arc<Metrics>,
}

/// Writes the recorded Events. [`EventWriter::run`] needs a task of its own.
pub struct EventWriter {
    waiting: mpsc::Receiver<PendingEvent>,
    client: Client,
    reporter: Reporter,
    metrics: Arc<Metrics>,
    correlator: EventCorrelator,
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWriter")
            .field("reporter", &self.reporter)
            .finish_non_exhaustive()
    }
}

/// An Event that is to be written.
#[derive(Debug)]
struct PendingEvent {
    regarding: ObjectReference,
    reason: String,
    action: String,
    message: String,
}

/// Returns a recorder and its writer.
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
        correlator: EventCorrelator::new(),
    };
    let recorder = Recorder {
        waiting: sender,
        metrics,
    };
    (recorder, writer)
}

impl Recorder {
    /// Records a warning about an object: a `reason` in CamelCase, the `action` that failed, and `sentences` for users, which are cleaned,
    /// cut, and joined into one Event if they fit. Never waits: an Event that cannot be queued is dropped and counted.
    pub fn warn(
        &self,
        regarding: &ObjectReference,
        reason: &str,
        action: &str,
        sentences: &[impl AsRef<str>],
    ) {
        for message in messages(sentences) {
            let pending = PendingEvent {
                regarding: regarding.clone(),
                reason: reason.to_owned(),
                action: action.to_owned(),
                message,
            };
            match self.waiting.try_send(pending) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => self.metrics.event_dropped("full"),
                Err(TrySendError::Closed(_)) => self.metrics.event_dropped("closed"),
            }
        }
    }
}

/// Joins sentences into the messages of as few Events as possible. The last message counts those that are left out.
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

/// Cuts a text to the length that an Event may have.
fn cut(text: String) -> String {
    if text.len() <= MESSAGE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MESSAGE_BYTES);
    format!("{} ...", text.get(..end).unwrap_or_default())
}

impl EventWriter {
    /// Writes Events until all recorders are dropped and no Event is pending.
    pub async fn run(mut self) {
        while let Some(pending) = self.waiting.recv().await {
            let namespace = namespace(&pending.regarding);
            let name = pending.regarding.name.as_deref().unwrap_or_default();
            match self.write(&pending).await {
                Ok(()) => {}
                Err(EventError::Spam) => {
                    self.metrics.event_dropped("spam");
                    tracing::debug!(
                        namespace,
                        name,
                        pending.reason,
                        "an Event exceeds the rate limit of its object and is dropped"
                    );
                }
                Err(EventError::Refused(error)) => {
                    self.metrics.event_dropped("error");
                    tracing::warn!(namespace, name, pending.reason, message = pending.message, %error, "an Event cannot be written");
                }
            }
        }
    }

    async fn write(&mut self, pending: &PendingEvent) -> Result<(), EventError> {
        let key = self.correlator.key(pending);
        let known = self.correlator.repeat(&key, Instant::now());
        if !self.correlator.allows(&key.object) {
            return Err(EventError::Spam);
        }
        if let Some((name, count)) = known
            && self.count(pending, &name, count).await?
        {
            return Ok(());
        }
        let name = self.create(pending).await?;
        self.correlator.remember(key, name, Instant::now());
        Ok(())
    }

    fn events(&self, pending: &PendingEvent) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace(&pending.regarding))
    }

    /// Increments the count of an earlier Event. Returns `false` if that Event does not exist any more.
    async fn count(
        &self,
        pending: &PendingEvent,
        name: &str,
        count: i32,
    ) -> Result<bool, kube::Error> {
        let events = self.events(pending);
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

    async fn create(&self, pending: &PendingEvent) -> Result<String, kube::Error> {
        let event = self.event(pending, Timestamp::now());
        let name = event.metadata.name.clone().unwrap_or_default();
        let events = self.events(pending);
        let parameters = PostParams::default();
        match retried(|| events.create(&parameters, &event)).await {
            Ok(_) => Ok(name),
            // An answer was lost: the Event was created by an earlier attempt.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name),
            Err(error) => Err(error),
        }
    }

    fn event(&self, pending: &PendingEvent, now: Timestamp) -> Event {
        let regarding = pending.regarding.name.as_deref().unwrap_or_default();
        let cut = regarding.floor_char_boundary(NAME_BYTES);
        let regarding = regarding.get(..cut).unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{regarding}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace(&pending.regarding).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: pending.regarding.clone(),
            type_: Some("Warning".to_owned()),
            reason: Some(pending.reason.clone()),
            action: Some(pending.action.clone()),
            message: Some(pending.message.clone()),
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
enum EventError {
    /// The rate limit of its object is exceeded.
    Spam,
    /// The API server refused it, or did not answer.
    Refused(kube::Error),
}

impl From<kube::Error> for EventError {
    fn from(error: kube::Error) -> Self {
        Self::Refused(error)
    }
}

/// Returns the namespace of an object's Events: `default` for objects without a namespace.
fn namespace(regarding: &ObjectReference) -> &str {
    regarding.namespace.as_deref().unwrap_or("default")
}

/// Retries a call up to three times while the API server is overloaded or unreachable.
async fn retried<T, F>(call: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    call.retry(ExponentialBuilder::new().with_jitter())
        .when(is_transient)
        .await
}

/// The Events that were written recently, and the rate limits of their objects, as client-go's correlator keeps them.
#[derive(Debug)]
struct EventCorrelator {
    hasher: RandomState,
    written: HashMap<EventKey, WrittenEvent>,
    limits: DefaultKeyedRateLimiter<Arc<str>>,
}

/// The identity of an Event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EventKey {
    object: Arc<str>,
    /// The hash of the reason and the message, which may be long.
    hash: u64,
}

#[derive(Debug)]
struct WrittenEvent {
    name: String,
    count: i32,
    last: Instant,
}

impl EventCorrelator {
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

    fn key(&self, pending: &PendingEvent) -> EventKey {
        let regarding = &pending.regarding;
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
        let hash = self.hasher.hash_one((&pending.reason, &pending.message));
        EventKey { object, hash }
    }

    /// Counts a repeated Event within the window. Returns the first one's name, and the count.
    fn repeat(&mut self, key: &EventKey, now: Instant) -> Option<(String, i32)> {
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

    fn remember(&mut self, key: EventKey, name: String, now: Instant) {
        if self.written.len() >= REMEMBERED {
            self.written
                .retain(|_, written| now.duration_since(written.last) <= WINDOW);
        }
        // There are still too many: repeated Events become new ones.
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        let count = 1;
        let last = now;
        self.written.insert(key, WrittenEvent { name, count, last });
    }
}

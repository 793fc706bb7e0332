//! Events about TrainJobs.
//!
//! They are core/v1 Events: the Kubeflow SDK sorts by firstTimestamp and skips Events without one, such as the events.k8s.io/v1 Events of
//! kube's recorder. As in client-go, an Event that is repeated within 10 minutes increments the count of the first one, and the writes for
//! an object are rate-limited. Recording never delays or fails a reconcile.

mod correlator;
mod pending;

use std::{fmt, sync::Arc};

use backon::{ExponentialBuilder, Retryable as _};
use correlator::{EventCorrelator, WrittenEvent};
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use pending::{Pending, Report};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::Instant,
};
use trainyard_model::text::clean;

use crate::{
    client::is_transient,
    kubernetes::unless_gone,
    log_shares::{AllowedLine, LogShares},
    metrics::Metrics,
};

/// The most bytes of a message; the API server accepts 1,024.
const MESSAGE_BYTES: usize = 950;

/// The most Events for one report of errors, and of warnings.
const MESSAGES: usize = 4;
const WARNINGS: usize = 20;

/// The most bytes of the object's name in the Event's name.
const NAME_BYTES: usize = 230;

/// The types of Events.
const NORMAL: &str = "Normal";
const WARNING: &str = "Warning";

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
    pending: Arc<Pending>,
    wake: mpsc::Sender<()>,
    metrics: Arc<Metrics>,
    log: Arc<LogShares>,
}

/// Writes the recorded Events. [`EventWriter::run`] needs a task of its own.
pub struct EventWriter {
    pending: Arc<Pending>,
    /// Gets a message after a report was added, and is closed when all recorders are dropped.
    woken: mpsc::Receiver<()>,
    client: Client,
    reporter: Reporter,
    metrics: Arc<Metrics>,
    correlator: EventCorrelator,
    log: Arc<LogShares>,
}

impl fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWriter")
            .field("reporter", &self.reporter)
            .finish_non_exhaustive()
    }
}

/// Returns a recorder and its writer.
#[must_use]
pub fn recorder(
    client: Client,
    reporter: Reporter,
    metrics: Arc<Metrics>,
) -> (Recorder, EventWriter) {
    let (wake, woken) = mpsc::channel(1);
    let pending = Arc::new(Pending::new());
    let log = Arc::new(LogShares::default());
    let writer = EventWriter {
        pending: Arc::clone(&pending),
        woken,
        client,
        reporter,
        metrics: Arc::clone(&metrics),
        correlator: EventCorrelator::new(),
        log: Arc::clone(&log),
    };
    let recorder = Recorder {
        pending,
        wake,
        metrics,
        log,
    };
    (recorder, writer)
}

impl Recorder {
    /// Returns the shares of the log, which lines about Events count against too.
    pub(crate) fn log_shares(&self) -> Arc<LogShares> {
        Arc::clone(&self.log)
    }

    /// Records a warning about an object: a `reason` in CamelCase, the `action` that failed, and `sentences` for users, which are cleaned,
    /// cut, and joined into one Event if they fit. A warning about the same object for the same reason that was not written yet is replaced.
    /// Never waits: an Event that cannot be queued is dropped and counted.
    pub fn warn(
        &self,
        regarding: &ObjectReference,
        reason: &str,
        action: &str,
        sentences: &[impl AsRef<str>],
    ) {
        self.add(regarding, (WARNING, reason, action), messages(sentences));
    }

    /// Records like [`Self::warn`] what has happened to an object as planned.
    pub fn note(
        &self,
        regarding: &ObjectReference,
        reason: &str,
        action: &str,
        sentences: &[impl AsRef<str>],
    ) {
        self.add(regarding, (NORMAL, reason, action), messages(sentences));
    }

    /// Records warnings like [`Self::warn`], each as an Event of its own.
    pub fn warn_each(
        &self,
        regarding: &ObjectReference,
        reason: &str,
        action: &str,
        sentences: &[impl AsRef<str>],
    ) {
        let messages = sentences.iter().take(WARNINGS);
        let messages = messages.map(|sentence| cut(clean(sentence.as_ref())));
        self.add(regarding, (WARNING, reason, action), messages.collect());
    }

    fn add(
        &self,
        regarding: &ObjectReference,
        (kind, reason, action): (&'static str, &str, &str),
        messages: Vec<String>,
    ) {
        if messages.is_empty() {
            return;
        }
        let events = messages.len();
        let dropped = self.pending.add(Report {
            regarding: regarding.clone(),
            kind,
            reason: reason.to_owned(),
            action: action.to_owned(),
            messages,
            times: 1,
        });
        self.metrics.events_dropped("replaced", dropped.replaced);
        self.metrics.events_dropped("full", dropped.full);
        if let Err(TrySendError::Closed(())) = self.wake.try_send(()) {
            self.metrics.events_dropped("closed", events);
        }
    }
}

/// Joins sentences into the messages of as few Events as possible. The last message counts those that are left out.
fn messages(sentences: &[impl AsRef<str>]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let sentence = cut(clean(sentence.as_ref()));
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
        loop {
            let is_open = self.woken.recv().await.is_some();
            while let Some(report) = self.pending.take() {
                for message in &report.messages {
                    self.write_or_drop(&report, message).await;
                }
            }
            if !is_open {
                break;
            }
        }
    }

    async fn write_or_drop(&mut self, report: &Report, message: &str) {
        let namespace = report.namespace();
        let name = report.regarding.name.as_deref().unwrap_or_default();
        match self.write(report, message).await {
            Ok(()) => {}
            Err(EventError::Spam) => {
                self.metrics.events_dropped("spam", 1);
                tracing::debug!(
                    namespace,
                    name,
                    report.reason,
                    "an Event exceeds the rate limit of its object and is dropped"
                );
            }
            Err(EventError::Refused(error)) => {
                self.metrics.events_dropped("error", 1);
                if let Some(AllowedLine { left_out }) = self.log.allow(namespace) {
                    tracing::warn!(namespace, name, report.reason, message, %error, left_out, "an Event cannot be written");
                }
            }
        }
    }

    async fn write(&mut self, report: &Report, message: &str) -> Result<(), EventError> {
        let key = self.correlator.key(report, message);
        let known = self.correlator.repeat(&key, report.times, Instant::now());
        if !self.correlator.allows(&key.object) {
            return Err(EventError::Spam);
        }
        if let Some((name, count)) = known
            && self.count(report, &name, count).await?
        {
            return Ok(());
        }
        let name = self.create(report, message).await?;
        let written = WrittenEvent {
            name,
            count: report.times,
            last: Instant::now(),
        };
        self.correlator.remember(key, written);
        Ok(())
    }

    fn events(&self, report: &Report) -> Api<Event> {
        Api::namespaced(self.client.clone(), report.namespace())
    }

    /// Increments the count of an earlier Event. Returns `false` if that Event does not exist any more.
    async fn count(&self, report: &Report, name: &str, count: i32) -> Result<bool, kube::Error> {
        let events = self.events(report);
        let patch = Patch::Merge(serde_json::json!({
            "count": count,
            "lastTimestamp": Time(Timestamp::now()),
        }));
        let parameters = PatchParams::default();
        let counted = retried(|| events.patch(name, &parameters, &patch)).await;
        Ok(unless_gone(counted)?.is_some())
    }

    async fn create(&self, report: &Report, message: &str) -> Result<String, kube::Error> {
        let event = self.event(report, message, Timestamp::now());
        let name = event.metadata.name.clone().unwrap_or_default();
        let events = self.events(report);
        let parameters = PostParams::default();
        match retried(|| events.create(&parameters, &event)).await {
            Ok(_) => Ok(name),
            // An answer was lost: the Event was created by an earlier attempt.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name),
            Err(error) => Err(error),
        }
    }

    fn event(&self, report: &Report, message: &str, now: Timestamp) -> Event {
        let regarding = report.regarding.name.as_deref().unwrap_or_default();
        let cut = regarding.floor_char_boundary(NAME_BYTES);
        let regarding = regarding.get(..cut).unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{regarding}.{:x}", now.as_nanosecond())),
                namespace: Some(report.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: report.regarding.clone(),
            type_: Some(report.kind.to_owned()),
            reason: Some(report.reason.clone()),
            action: Some(report.action.clone()),
            message: Some(message.to_owned()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(report.times),
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

/// Retries a call up to three times while the API server is overloaded or unreachable.
async fn retried<T, F>(call: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    call.retry(ExponentialBuilder::new().with_jitter())
        .when(is_transient)
        .await
}

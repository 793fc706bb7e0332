//! The queue of spans that have ended.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::{Context, KeyValue, Value, trace::Status};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanEvents, SpanLinks, SpanProcessor},
};
use tokio::sync::mpsc::{Sender, error::TrySendError};
use trainyard_model::text::clean_to;

use crate::metrics::Metrics;

/// The attributes that are exported. Whatever is added to a span has to be listed here, and may contain neither texts of objects, such as
/// the values of env vars, nor messages of errors.
const ATTRIBUTES: [&str; 13] = [
    "code",
    "job",
    "kind",
    "name",
    "namespace",
    "outcome",
    "phase",
    "plan",
    "plugin",
    "uid",
    "verb",
    "verdict",
    "webhook",
];

/// The most characters of an attribute. Names of objects have up to 253.
const LONGEST: usize = 256;

/// Puts spans that have ended into a queue, from which they are exported. It is the processor of the SDK for OpenTelemetry, whose own would
/// not say how many spans it drops.
#[derive(Debug)]
pub(super) struct SpanQueue {
    spans: Sender<SpanData>,
    /// Whether spans were dropped because the queue was full, since this was last read.
    has_dropped: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
}

impl SpanQueue {
    pub(super) fn new(spans: Sender<SpanData>, metrics: Arc<Metrics>) -> Self {
        metrics.spans_dropped("full", 0);
        metrics.spans_dropped("error", 0);
        Self {
            spans,
            has_dropped: Arc::default(),
            metrics,
        }
    }

    /// Returns whether spans were dropped because the queue was full. The reader resets it.
    pub(super) fn has_dropped(&self) -> Arc<AtomicBool> {
        self.has_dropped.clone()
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        keep_only_what_is_exported(&mut span);
        match self.spans.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.has_dropped.store(true, Ordering::Relaxed);
                self.metrics.spans_dropped("full", 1);
            }
            Err(TrySendError::Closed(_)) => self.metrics.spans_dropped("closed", 1),
        }
    }

    /// The exporter sends what is left in the queue.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Removes everything but the attributes that are listed, and cleans them.
fn keep_only_what_is_exported(span: &mut SpanData) {
    span.attributes.retain_mut(keep);
    span.events = SpanEvents::default();
    span.links = SpanLinks::default();
    if matches!(span.status, Status::Error { .. }) {
        span.status = Status::error("");
    }
}

fn keep(attribute: &mut KeyValue) -> bool {
    if !ATTRIBUTES.contains(&attribute.key.as_str()) {
        return false;
    }
    match &mut attribute.value {
        Value::String(text) => *text = clean_to(text.as_str(), LONGEST).into(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => {}
        _ => return false,
    }
    true
}

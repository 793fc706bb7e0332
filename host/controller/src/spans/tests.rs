#![allow(clippy::unwrap_used)]

use std::{
    io,
    sync::{Mutex, atomic::AtomicUsize, atomic::Ordering},
};

use opentelemetry::trace::{Tracer as _, TracerProvider as _};
use opentelemetry_sdk::{
    error::{OTelSdkError, OTelSdkResult},
    trace::{SpanData, SpanExporter},
};
use tracing::subscriber::DefaultGuard;

use super::*;
use crate::queue::{Backoff, Queue};

/// A collector that takes spans, refuses them or never answers.
#[derive(Debug, Clone, Default)]
struct Scripted(Arc<(Mutex<Does>, AtomicUsize)>);

#[derive(Debug, Clone, Copy, Default)]
enum Does {
    #[default]
    Accept,
    Refuse,
    Hang,
}

impl Scripted {
    fn set(&self, does: Does) {
        *self.0.0.lock().unwrap() = does;
    }

    fn accepted(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl SpanExporter for Scripted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let does = *self.0.0.lock().unwrap();
        match does {
            Does::Accept => {
                self.0.1.fetch_add(batch.len(), Ordering::Relaxed);
                Ok(())
            }
            Does::Refuse => Err(OTelSdkError::InternalFailure("refused".to_owned())),
            Does::Hang => std::future::pending().await,
        }
    }
}

/// The log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start(&self) -> DefaultGuard {
        let log = self.clone();
        let log = tracing_subscriber::fmt().with_writer(move || log.clone());
        tracing::subscriber::set_default(log.finish())
    }

    /// Returns how many lines have this text.
    fn count(&self, text: &str) -> usize {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

const LIMITS: ExportLimits = ExportLimits {
    queue: 8,
    batch: 4,
    delay: Duration::from_secs(5),
    timeout: Duration::from_secs(10),
    last: Duration::from_secs(2),
};

struct Test {
    collector: Scripted,
    metrics: Arc<Metrics>,
    export: SpanExport,
}

impl Test {
    fn start() -> Self {
        let metrics = Arc::new(Metrics::new(&Queue::new(Backoff::default())));
        let collector = Scripted::default();
        let endpoint = "http://otel:4318".parse().unwrap();
        let otlp = (collector.clone(), LastFailure::default());
        let process = Process {
            version: "1",
            pod: "pod".to_owned(),
            namespace: "system".to_owned(),
        };
        let settings = TracingSettings {
            endpoint: None,
            sampling_ratio: Some(1.0),
            limits: LIMITS,
        };
        let export = SpanExport::with(otlp, &endpoint, &settings, resource(process), &metrics);
        Self {
            collector,
            metrics,
            export,
        }
    }

    /// Ends that many spans.
    fn end_spans(&self, count: usize) {
        for _ in 0..count {
            drop(self.export.tracer.start("span"));
        }
    }

    fn dropped(&self, reason: &str) -> u64 {
        let series = format!("trainyard_spans_dropped_total{{reason=\"{reason}\"}} ");
        let text = self.metrics.text().unwrap();
        let mut counts = text.lines().filter_map(|line| line.strip_prefix(&series));
        counts.next().map_or(0, |count| count.parse().unwrap())
    }
}

/// The clock of these tests jumps when nothing else is to do.
async fn minute() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_collector_are_logged_once() {
    let log = Log::default();
    let _guard = log.start();
    let test = Test::start();
    test.end_spans(3);
    minute().await;
    assert_eq!((test.collector.accepted(), test.dropped("error")), (3, 0));
    for does in [Does::Refuse, Does::Hang] {
        test.collector.set(does);
        for _ in 0..3 {
            test.end_spans(2);
            minute().await;
        }
    }
    assert_eq!((test.collector.accepted(), test.dropped("error")), (3, 12));
    assert_eq!(log.count("spans cannot be exported"), 1);
    test.collector.set(Does::Accept);
    for _ in 0..3 {
        test.end_spans(2);
        minute().await;
    }
    assert_eq!((test.collector.accepted(), test.dropped("error")), (9, 12));
    assert_eq!(log.count("all spans are exported again"), 1);
    assert_eq!(log.count("WARN"), 1);
}

#[tokio::test(start_paused = true)]
async fn full_queue_drops_spans_without_waiting() {
    let log = Log::default();
    let _guard = log.start();
    let test = Test::start();
    test.end_spans(100);
    assert_eq!(test.dropped("full"), 92);
    minute().await;
    assert_eq!(test.collector.accepted(), 8);
    assert_eq!(log.count("some are dropped"), 1);
    test.export.finish().await;
}

#[tokio::test(start_paused = true)]
async fn rest_is_sent_at_the_end_within_a_bound() {
    let test = Test::start();
    test.end_spans(7);
    let (collector, started) = (test.collector.clone(), tokio::time::Instant::now());
    test.export.finish().await;
    assert_eq!(collector.accepted(), 7);
    assert_eq!(started.elapsed(), Duration::ZERO);

    let log = Log::default();
    let _guard = log.start();
    let test = Test::start();
    test.collector.set(Does::Hang);
    test.end_spans(7);
    test.export.finish().await;
    assert!(started.elapsed() <= LIMITS.last + Duration::from_millis(10));
    assert_eq!(log.count("could not be exported in time"), 1);
}

#[tokio::test(start_paused = true)]
async fn spans_that_end_after_the_export_are_counted() {
    let test = Test::start();
    let tracer = test.export.tracer.clone();
    let metrics = test.metrics.clone();
    test.export.finish().await;
    drop(tracer.start("span"));
    let text = metrics.text().unwrap();
    assert!(
        text.contains("trainyard_spans_dropped_total{reason=\"closed\"} 1"),
        "{text}"
    );
}

/// Only listed attributes leave the process, and texts are cleaned and cut.
#[tokio::test]
async fn attributes_are_selected_and_cleaned() {
    let metrics = Arc::new(Metrics::new(&Queue::new(Backoff::default())));
    let (sender, mut spans) = mpsc::channel(1);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(SpanQueue::new(sender, metrics))
        .build();
    let mut span = provider.tracer("test").start("span");
    {
        use opentelemetry::trace::Span as _;
        span.set_attribute(KeyValue::new("job", "a\u{1b}[31m\u{202e}".repeat(1000)));
        span.set_attribute(KeyValue::new("code", 409));
        span.set_attribute(KeyValue::new("error", "text of an object"));
        span.add_event("error", vec![KeyValue::new("job", "text of an object")]);
        span.set_status(Status::error("text of an object"));
    }
    drop(span);
    let span = spans.recv().await.unwrap();
    assert!(
        !format!("{span:?}").contains("text of an object"),
        "{span:?}"
    );
    let keys: Vec<_> = span.attributes.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["job", "code"]);
    let job = span.attributes.first().unwrap().value.to_string();
    assert!(
        job.starts_with("a\\u{1b}[31m\\u{202e}a") && job.chars().count() <= 257,
        "{job}"
    );
    assert_eq!(span.status, Status::error(""));
}

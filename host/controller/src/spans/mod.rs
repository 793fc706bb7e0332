//! Spans, exported to a collector of OpenTelemetry by OTLP over HTTP.
//!
//! The controller's spans are those of the crate `tracing`. Some are in the log, too; the others have the level `trace`. [`SpanExport`] adds
//! a layer to the subscriber that turns both into spans of OpenTelemetry. A span passes through these files:
//!
//! 1. [`queue`] keeps the attributes that may be exported, cleans them as the log is cleaned, and puts the span into a bounded queue. It
//!    never waits: if the queue is full, the span is dropped and counted.
//! 2. [`export`] sends batches of the queue, and logs when the collector fails and when it recovers.
//! 3. [`collector`] is the HTTP client for it, and [`endpoint`] its address.
//!
//! Without an endpoint, none of this exists, and a span that is not in the log costs the comparison of two numbers.

mod collector;
mod endpoint;
mod export;
mod queue;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use collector::LastFailure;
pub use endpoint::{Endpoint, EndpointError};
use export::{Exporter, State};
use opentelemetry::{
    KeyValue, Value,
    trace::{Status, TracerProvider as _},
};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{Sampler, SdkTracer, SdkTracerProvider, SpanExporter},
};
use queue::SpanQueue;
use thiserror::Error;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, filter_fn},
    registry::LookupSpan,
};

use crate::metrics::Metrics;

/// The name of the controller in traces, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` has another one.
const SERVICE: &str = "trainyard-controller";

/// The environment variable with the name of the service.
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// The crates whose spans are exported.
const CRATES: [&str; 2] = ["trainyard_controller", "trainyard_render"];

/// The settings of the export.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracingSettings {
    /// The collector. Without it, no spans are exported.
    pub endpoint: Option<Endpoint>,
    /// The share of traces that are exported, from 0 to 1. By default, the environment variable `OTEL_TRACES_SAMPLER` decides, and without it,
    /// all are exported.
    pub sampling_ratio: Option<f64>,
    /// The bounds.
    pub limits: ExportLimits,
}

/// The bounds of the export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLimits {
    /// How many spans wait for the export. Default 2,048.
    pub queue: usize,
    /// How many spans are sent at once. Default 512.
    pub batch: usize,
    /// How long a span waits for others that are sent with it. Default 5 s.
    pub delay: Duration,
    /// How long sending one batch may take, retries included. Default 10 s.
    pub timeout: Duration,
    /// How long sending the rest may take when the process stops. Default 2 s.
    pub last: Duration,
}

impl Default for ExportLimits {
    fn default() -> Self {
        Self {
            queue: 2048,
            batch: 512,
            delay: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            last: Duration::from_secs(2),
        }
    }
}

/// What traces say of this process.
#[derive(Debug, Clone)]
pub struct Process {
    /// The version of the program.
    pub version: &'static str,
    /// The name of the pod.
    pub pod: String,
    /// The namespace of the pod.
    pub namespace: String,
}

/// Why spans cannot be exported.
#[derive(Debug, Error)]
pub enum SpanExportError {
    /// The client for the collector cannot be created.
    #[error(
        "cannot export spans to {endpoint}: the HTTP client cannot be created: {source}; check the certificates of the system, or the file that \
         OTEL_EXPORTER_OTLP_CERTIFICATE names"
    )]
    Client {
        /// The collector.
        endpoint: Endpoint,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The library refuses the endpoint.
    #[error(
        "cannot export spans to {endpoint}: {source}; correct this URL, or the environment variables OTEL_EXPORTER_OTLP_*"
    )]
    Exporter {
        /// The collector.
        endpoint: Endpoint,
        /// The cause.
        source: Box<ExporterBuildError>,
    },
}

/// The running export of spans.
pub struct SpanExport {
    tracer: SdkTracer,
    exporter: AbortOnDropHandle<()>,
    stop: CancellationToken,
    limits: ExportLimits,
}

impl SpanExport {
    /// Starts the export, if there is an endpoint. Call it in a Tokio runtime.
    ///
    /// # Errors
    /// The export cannot be configured. That a collector does not answer is no error.
    pub fn start(
        settings: &TracingSettings,
        process: Process,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<Self>, SpanExportError> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        let timeout = settings.limits.timeout;
        let (collector, failure) = collector::connect(endpoint, timeout)?;
        let mut otlp = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(endpoint.traces())
            .with_timeout(timeout)
            .build()
            .map_err(|source| SpanExportError::Exporter {
                endpoint: endpoint.clone(),
                source: Box::new(source),
            })?;
        let resource = resource(process);
        otlp.set_resource(&resource);
        let otlp = (otlp, failure);
        Ok(Some(Self::with(
            otlp, endpoint, settings, resource, metrics,
        )))
    }

    /// Starts the export to this exporter.
    fn with<E: SpanExporter + 'static>(
        (otlp, failure): (E, LastFailure),
        endpoint: &Endpoint,
        settings: &TracingSettings,
        resource: Resource,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let limits = settings.limits.clone();
        let (sender, spans) = mpsc::channel(limits.queue);
        let queue = SpanQueue::new(sender, metrics.clone());
        let exporter = Exporter {
            otlp,
            failure,
            endpoint: endpoint.clone(),
            limits: limits.clone(),
            spans,
            has_dropped: queue.has_dropped(),
            metrics: metrics.clone(),
            state: State::default(),
        };
        let stop = CancellationToken::new();
        let exporter = AbortOnDropHandle::new(tokio::spawn(exporter.run(stop.clone())));
        let mut provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_span_processor(queue);
        if let Some(ratio) = settings.sampling_ratio {
            let ratio = Sampler::TraceIdRatioBased(ratio);
            provider = provider.with_sampler(Sampler::ParentBased(Box::new(ratio)));
        }
        Self {
            tracer: provider.build().tracer("trainyard"),
            exporter,
            stop,
            limits,
        }
    }

    /// Returns the layer of a subscriber that exports its spans. The log's filter must not apply to it.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(filter_fn(is_exported).with_max_level_hint(LevelFilter::TRACE))
    }

    /// Sends the spans that have ended, and ends the export. If the collector does not take them in time, they are lost.
    pub async fn finish(self) {
        self.stop.cancel();
        if timeout(self.limits.last, self.exporter).await.is_err() {
            tracing::warn!("some spans could not be exported in time and are lost");
        }
    }
}

/// Whether it is a span of the controller. Events are not exported, because the texts of errors may quote objects.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    let module = metadata.target().split("::").next().unwrap_or_default();
    metadata.is_span() && CRATES.contains(&module)
}

/// Describes the process. What the standard environment variables say takes precedence.
fn resource(process: Process) -> Resource {
    let resource = Resource::builder_empty()
        .with_service_name(SERVICE)
        .with_attribute(KeyValue::new("service.version", process.version))
        .with_attribute(KeyValue::new("k8s.pod.name", process.pod))
        .with_attribute(KeyValue::new("k8s.namespace.name", process.namespace))
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match std::env::var(SERVICE_VARIABLE) {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}

/// Adds an attribute to an exported span. The log does not show it.
pub(crate) fn note(span: &Span, key: &'static str, value: impl Into<Value>) {
    span.set_attribute(key, value);
}

/// Adds how it ended to an exported span, and whether that is a failure.
pub(crate) fn end(span: &Span, (key, value): (&'static str, impl Into<Value>), failed: bool) {
    note(span, key, value);
    if failed {
        span.set_status(Status::error(""));
    }
}

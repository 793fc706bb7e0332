//! The task that sends spans to the collector.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::{sync::mpsc::Receiver, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Endpoint, ExportLimits, collector::LastFailure};
use crate::metrics::Metrics;

/// Sends the spans of a queue.
pub(super) struct Exporter<E> {
    pub(super) otlp: E,
    /// Why the collector did not answer the last request.
    pub(super) failure: LastFailure,
    pub(super) endpoint: Endpoint,
    pub(super) limits: ExportLimits,
    pub(super) spans: Receiver<SpanData>,
    /// Whether spans were dropped because the queue was full.
    pub(super) has_dropped: Arc<AtomicBool>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) state: State,
}

/// How the export goes. Each change is logged once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// All spans are exported.
    #[default]
    Works,
    /// The collector takes spans, but more end than it takes.
    Behind,
    /// The collector does not take spans.
    Fails,
}

impl<E: SpanExporter> Exporter<E> {
    /// Exports spans until `stop`, and then those that are left.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        while stop.run_until_cancelled(self.fill(&mut batch)).await == Some(true) {
            self.export(std::mem::take(&mut batch)).await;
        }
        self.spans.close();
        loop {
            let missing = self.limits.batch.saturating_sub(batch.len());
            let received = self.spans.recv_many(&mut batch, missing).await;
            if batch.is_empty() {
                return;
            }
            self.export(std::mem::take(&mut batch)).await;
            if received == 0 {
                return;
            }
        }
    }

    /// Waits for a span, and then some time for others. Returns whether there is one. If the future is dropped, the batch keeps its spans.
    async fn fill(&mut self, batch: &mut Vec<SpanData>) -> bool {
        if self.spans.recv_many(batch, self.limits.batch).await == 0 {
            return false;
        }
        let limit = self.limits.batch;
        let others = async {
            while batch.len() < limit && self.spans.recv_many(batch, limit - batch.len()).await > 0
            {
            }
        };
        let _ = timeout(self.limits.delay, others).await;
        true
    }

    async fn export(&mut self, batch: Vec<SpanData>) {
        let count = batch.len();
        let exported = timeout(self.limits.timeout, self.otlp.export(batch)).await;
        let failed = match exported {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(self.failure.take().unwrap_or_else(|| error.to_string())),
            Err(_) => Some(format!("not accepted within {:?}", self.limits.timeout)),
        };
        if failed.is_some() {
            self.metrics.spans_dropped("error", count);
        }
        let dropped = self.has_dropped.swap(false, Ordering::Relaxed);
        let state = match &failed {
            Some(_) => State::Fails,
            None if dropped => State::Behind,
            None => State::Works,
        };
        if std::mem::replace(&mut self.state, state) != state {
            self.log(failed.unwrap_or_default());
        }
    }

    /// Logs a change of the state.
    fn log(&self, error: String) {
        let endpoint = &self.endpoint;
        match self.state {
            State::Works => tracing::info!(%endpoint, "all spans are exported again"),
            State::Behind => tracing::warn!(
                %endpoint,
                "the collector takes spans more slowly than they end, and some are dropped; sample fewer traces"
            ),
            State::Fails => tracing::warn!(
                %endpoint,
                error,
                "spans cannot be exported and are dropped; the next ones are tried again"
            ),
        }
    }
}

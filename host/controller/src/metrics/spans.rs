//! The export of spans.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::labels::ReasonLabels;

/// The metrics of the export of spans.
#[derive(Clone, Default)]
pub(super) struct SpanMetrics(Family<ReasonLabels, Counter>);

impl SpanMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "trainyard_spans_dropped",
            "Spans that were not exported",
            self.0.clone(),
        );
    }

    pub(super) fn count_dropped(&self, reason: &'static str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.0.get_or_create(&ReasonLabels { reason }).inc_by(count);
    }
}

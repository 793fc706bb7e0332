//! Requests to the status server.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::labels::CodeLabels;

/// The metrics of the status server.
#[derive(Clone, Default)]
pub(super) struct StatusMetrics(Family<CodeLabels, Counter>);

impl StatusMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "trainyard_status_requests",
            "Requests of pods that report progress, by the HTTP code of the answer",
            self.0.clone(),
        );
    }

    pub(super) fn count(&self, code: u16) {
        self.0.get_or_create(&CodeLabels { code }).inc();
    }
}

//! Requests to the webhooks.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::labels::{VerdictLabels, WebhookLabels};

/// Seconds of a request, up to the deadline of checks.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 5.0];

/// The metrics of the webhooks.
#[derive(Clone)]
pub(super) struct AdmissionMetrics {
    requests: Family<VerdictLabels, Counter>,
    seconds: Family<WebhookLabels, Histogram, fn() -> Histogram>,
}

impl Default for AdmissionMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
        }
    }
}

impl AdmissionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "trainyard_admission_requests",
            "Requests to webhooks, by verdict: allowed, unchecked, denied, error",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "trainyard_admission_duration",
            "The duration of requests to webhooks",
            Unit::Seconds,
            self.seconds.clone(),
        );
    }

    pub(super) fn count(&self, webhook: &'static str, verdict: &'static str, took: Duration) {
        let labels = VerdictLabels { webhook, verdict };
        self.requests.get_or_create(&labels).inc();
        let labels = WebhookLabels { webhook };
        self.seconds
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }
}

//! The certificate of the TLS servers.

use std::time::SystemTime;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::labels::ChangeLabels;

/// The metrics of the certificate.
#[derive(Clone, Default)]
pub(super) struct CertificateMetrics {
    expires: Gauge,
    changes: Family<ChangeLabels, Counter>,
}

impl CertificateMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "trainyard_certificate_expiration_timestamp",
            "When the certificate expires that this process serves and that the controller created; 0 without one",
            Unit::Seconds,
            self.expires.clone(),
        );
        registry.register(
            "trainyard_certificate_changes",
            "Writes of the Secret with the certificate and of webhook configurations, by change: create, restore, renew, add-authority, use-next-authority, inject; replace-invalid counts broken Secrets",
            self.changes.clone(),
        );
    }

    pub(super) fn set_expiration(&self, time: SystemTime) {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.unwrap_or_default().as_secs();
        self.expires.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    pub(super) fn count(&self, change: &'static str) {
        self.changes.get_or_create(&ChangeLabels { change }).inc();
    }
}

//! How long ago the API server sent something of each watched kind, computed when metrics are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
    registry::Unit,
};
use tokio::time::Instant;

use super::labels::KindLabels;

/// When the API server last sent something of each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchMetrics(Arc<Mutex<BTreeMap<&'static str, Instant>>>);

impl WatchMetrics {
    /// Notes that the API server sent something of that kind, or that its watch begins.
    pub(super) fn heard(&self, kind: &'static str) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(kind, Instant::now());
    }
}

impl Collector for WatchMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds = kinds.clone();
        if kinds.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "trainyard_watch_age",
            "The time since the last object, event or bookmark of a watch",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (kind, heard) in kinds {
            let age = ConstGauge::new(heard.elapsed().as_secs_f64());
            age.encode(family.encode_family(&KindLabels { kind })?)?;
        }
        Ok(())
    }
}

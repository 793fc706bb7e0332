//! How many TrainJobs are in which state, counted when metrics are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

/// The state of a TrainJob, and the reason for it. Both are words of a fixed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct TrainJobLabels {
    /// Such as `running`.
    pub state: &'static str,
    /// Such as `RuntimeNotFound`; empty if there is none.
    pub reason: &'static str,
}

/// How many TrainJobs have which labels.
pub type TrainJobCounts = BTreeMap<TrainJobLabels, u64>;

/// The states that always have a series, so that an alert can tell 0 from a controller that does not count.
const STATES: [&str; 6] = [
    "complete",
    "failed",
    "refused",
    "running",
    "suspended",
    "waiting",
];

type Count = Box<dyn Fn() -> Option<TrainJobCounts> + Send + Sync>;

/// Counts TrainJobs once it knows how.
#[derive(Clone, Default)]
pub(super) struct TrainJobMetrics(Arc<OnceLock<Count>>);

impl TrainJobMetrics {
    /// Sets how TrainJobs are counted. Call it once.
    pub(super) fn count_with(&self, count: Count) {
        let _ = self.0.set(count);
    }
}

impl fmt::Debug for TrainJobMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainJobMetrics").finish_non_exhaustive()
    }
}

impl Collector for TrainJobMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(counted) = self.0.get().and_then(|count| count()) else {
            return Ok(());
        };
        let states = STATES.map(|state| (TrainJobLabels { state, reason: "" }, 0));
        let mut all = TrainJobCounts::from(states);
        all.extend(counted);
        let mut family = encoder.encode_descriptor(
            "trainyard_train_jobs",
            "TrainJobs by state, with the reason for it",
            None,
            MetricType::Gauge,
        )?;
        for (labels, count) in all {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

//! How many TrainJobs are in which state, counted when metrics are read.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::counted_later::CountedLater;

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

pub(super) type TrainJobMetrics = CountedLater<Option<TrainJobCounts>>;

impl Collector for TrainJobMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(counted) = self.count().flatten() else {
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

//! How many TrainJobs differ in the shadow mode, counted when metrics are read.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::counted_later::CountedLater;
use crate::shadow::ShadowCounts;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RowLabels {
    row: &'static str,
}

pub(super) type ShadowMetrics = CountedLater<ShadowCounts>;

fn gauge(count: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Collector for ShadowMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(ShadowCounts { outcomes, rows }) = self.count() else {
            return Ok(());
        };
        let mut family = encoder.encode_descriptor(
            "trainyard_shadow_train_jobs",
            "TrainJobs by how their rendering compares with the objects in the cluster",
            None,
            MetricType::Gauge,
        )?;
        for (outcome, count) in outcomes {
            let labels = OutcomeLabels {
                outcome: outcome.label(),
            };
            gauge(count).encode(family.encode_family(&labels)?)?;
        }
        let mut family = encoder.encode_descriptor(
            "trainyard_shadow_rows",
            "TrainJobs by row of divergences.md that they show, or may show if they have no JobSet",
            None,
            MetricType::Gauge,
        )?;
        for (row, count) in rows {
            gauge(count).encode(family.encode_family(&RowLabels { row })?)?;
        }
        Ok(())
    }
}

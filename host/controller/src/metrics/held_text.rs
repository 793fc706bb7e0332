//! The text that is held for each namespace, counted when metrics are read.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{
    counted_later::CountedLater,
    label::{Label, OTHER},
    labels::HeldLabels,
};

/// The most namespaces of a kind that have a series of their own: those with the most text.
const NAMESPACES: usize = 100;

/// The text that is held of the objects of a kind.
pub type HeldText = (&'static str, Vec<(Option<Arc<str>>, usize)>);

pub(super) type HeldTextMetrics = CountedLater<Vec<HeldText>>;

impl Collector for HeldTextMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(counted) = self.count() else {
            return Ok(());
        };
        let mut family = encoder.encode_descriptor(
            "trainyard_held_bytes",
            "Text of objects that is held in memory, by kind and namespace; namespaces beyond the 100 with the most are counted as <other>",
            None,
            MetricType::Gauge,
        )?;
        let mut put = |kind, namespace: &str, bytes: usize| {
            let namespace = Label::new(namespace);
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&HeldLabels { kind, namespace })?)
        };
        for (kind, mut namespaces) in counted {
            namespaces
                .sort_by(|(name, bytes), (other, more)| more.cmp(bytes).then(name.cmp(other)));
            let rest = namespaces.split_off(NAMESPACES.min(namespaces.len()));
            for (namespace, bytes) in namespaces {
                put(kind, namespace.as_deref().unwrap_or_default(), bytes)?;
            }
            if !rest.is_empty() {
                put(kind, OTHER, rest.iter().map(|(_, bytes)| bytes).sum())?;
            }
        }
        Ok(())
    }
}

//! For how many namespaces plugins are paused, counted when metrics are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{label::Label, labels::NameLabels};

/// Counts the open breakers of a plugin; `None` once the plugin was dropped.
type Count = Box<dyn Fn() -> Option<usize> + Send + Sync>;

/// The counts of plugins by their names. Two generations may have plugins of one name.
#[derive(Clone, Default)]
pub(super) struct BreakerMetrics(Arc<Mutex<Vec<(Label, Count)>>>);

impl BreakerMetrics {
    pub(super) fn count_with(&self, plugin: Label, count: Count) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|(_, count)| count().is_some());
        counts.push((plugin, count));
    }

    fn open(&self) -> BTreeMap<Label, i64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = BTreeMap::new();
        for (plugin, count) in &*counts {
            if let Some(count) = count() {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                *open.entry(plugin.clone()).or_default() += count;
            }
        }
        open
    }
}

impl fmt::Debug for BreakerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerMetrics").finish_non_exhaustive()
    }
}

impl Collector for BreakerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "trainyard_plugin_breakers_open",
            "Namespaces for which the plugin is paused, because its calls keep exhausting their limits",
            None,
            MetricType::Gauge,
        )?;
        for (plugin, count) in self.open() {
            let gauge = ConstGauge::new(count);
            gauge.encode(family.encode_family(&NameLabels { plugin })?)?;
        }
        Ok(())
    }
}

//! For how many namespaces plugins are paused, counted when metrics are read.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{
    label::Label,
    labels::{DigestLabels, NameLabels},
};
use crate::breaker::AllBreakers;

impl Collector for AllBreakers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut open: BTreeMap<Label, i64> = BTreeMap::new();
        let mut paused: BTreeMap<(Label, Label), i64> = BTreeMap::new();
        for breakers in self.all() {
            let labels = DigestLabels::of(&breakers.plugin().id);
            let count = i64::try_from(breakers.open()).unwrap_or(i64::MAX);
            *open.entry(labels.plugin.clone()).or_default() += count;
            let is_paused = paused.entry((labels.plugin, labels.digest)).or_default();
            *is_paused = i64::from(breakers.failing().is_some()).max(*is_paused);
        }
        let mut family = encoder.encode_descriptor(
            "trainyard_plugin_breakers_open",
            "Namespaces for which the plugin is paused, because its calls keep failing",
            None,
            MetricType::Gauge,
        )?;
        for (plugin, count) in open {
            let gauge = ConstGauge::new(count);
            gauge.encode(family.encode_family(&NameLabels { plugin })?)?;
        }
        let mut family = encoder.encode_descriptor(
            "trainyard_plugin_paused",
            "1 if the plugin is paused for all namespaces, because its calls fail in several and succeed in none",
            None,
            MetricType::Gauge,
        )?;
        for ((plugin, digest), is_paused) in paused {
            let gauge = ConstGauge::new(is_paused);
            gauge.encode(family.encode_family(&DigestLabels { plugin, digest })?)?;
        }
        Ok(())
    }
}

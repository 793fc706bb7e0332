//! For how many namespaces plugins are paused, counted when metrics are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};
use trainyard_model::plugin_info::PluginInfo;

use super::{
    label::Label,
    labels::{DigestLabels, NameLabels},
};
use crate::breaker::LoadedBreakers;

/// The breakers of all loaded plugins. Two generations may have plugins of one name.
#[derive(Clone, Default)]
pub(crate) struct Breakers(Arc<Mutex<Vec<Weak<LoadedBreakers>>>>);

impl Breakers {
    /// Adds those of a plugin, which count until they are dropped.
    pub(crate) fn add(&self, breakers: &Arc<LoadedBreakers>) {
        let mut all = self.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(breakers));
    }

    /// Returns those of a loaded plugin.
    pub(crate) fn of(&self, plugin: &Arc<PluginInfo>) -> Option<Arc<LoadedBreakers>> {
        let mut all = self.all().into_iter();
        all.find(|breakers| Arc::ptr_eq(breakers.plugin(), plugin))
    }

    /// Calls the plugins of a name again as if no call had failed. Returns whether one was paused for all namespaces.
    pub(crate) fn resume(&self, name: &str) -> bool {
        let all = self.all().into_iter();
        let named = all.filter(|breakers| &*breakers.plugin().id.name == name);
        named.filter(|breakers| breakers.resume()).count() > 0
    }

    fn all(&self) -> Vec<Arc<LoadedBreakers>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<LoadedBreakers>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breakers").finish_non_exhaustive()
    }
}

impl Collector for Breakers {
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

//! Metrics of plugin calls.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};
use trainyard_model::{
    plugin::{CallFailure, Phase},
    plugin_info::PluginId,
};

use super::labels::{CallLabels, DigestLabels, ErrorLabels};

/// Seconds of a plugin call: tens of microseconds, up to its wall-clock limit.
const CALL_SECONDS: [f64; 12] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.0,
];

/// One call of a plugin.
#[derive(Debug, Clone, Copy)]
pub struct PluginCall<'a> {
    pub plugin: &'a PluginId,
    pub phase: Phase,
    /// The duration.
    pub took: Duration,
    /// The instructions that it used, if known.
    pub fuel: Option<u64>,
    /// The number of entries in its journal.
    pub writes: u64,
    /// Why it failed, if it did.
    pub error: Option<&'a CallFailure>,
}

/// The metrics of plugin calls, by plugin and digest.
pub(super) struct CallMetrics {
    seconds: Family<CallLabels, Histogram, fn() -> Histogram>,
    fuel: Family<CallLabels, Counter>,
    writes: Family<CallLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    /// How many plugins are loaded with a name and a digest: generations may have it with different settings.
    loaded: Mutex<HashMap<DigestLabels, usize>>,
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            seconds: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            fuel: Family::default(),
            writes: Family::default(),
            errors: Family::default(),
            loaded: Mutex::default(),
        }
    }
}

impl CallMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "trainyard_plugin_call_duration",
            "The duration of plugin calls; its count is the number of calls",
            Unit::Seconds,
            self.seconds.clone(),
        );
        registry.register(
            "trainyard_plugin_fuel",
            "Instructions that plugin calls used",
            self.fuel.clone(),
        );
        registry.register(
            "trainyard_plugin_writes",
            "Writes that plugin calls made",
            self.writes.clone(),
        );
        registry.register(
            "trainyard_plugin_errors",
            format!(
                "Plugin calls without a result, by the kind of the error: {}",
                CallFailure::KINDS.join(", ")
            ),
            self.errors.clone(),
        );
    }

    pub(super) fn count(&self, call: &PluginCall<'_>) {
        let DigestLabels { plugin, digest } = DigestLabels::of(call.plugin);
        let phase = call.phase.name();
        let labels = CallLabels {
            plugin,
            phase,
            digest,
        };
        self.seconds
            .get_or_create(&labels)
            .observe(call.took.as_secs_f64());
        if let Some(fuel) = call.fuel {
            self.fuel.get_or_create(&labels).inc_by(fuel);
        }
        self.writes.get_or_create(&labels).inc_by(call.writes);
        if let Some(error) = call.error {
            let kind = error.kind();
            self.errors.get_or_create(&errors(&labels, kind)).inc();
        }
    }

    /// Notes that a plugin is loaded.
    pub(super) fn note_loaded(&self, plugin: &PluginId) {
        *self.loaded().entry(DigestLabels::of(plugin)).or_default() += 1;
    }

    /// Notes that a plugin was dropped. The series of a digest end with its last plugin, so that there are only those of generations that are held.
    pub(super) fn note_dropped(&self, plugin: &PluginId) {
        let of = DigestLabels::of(plugin);
        let mut loaded = self.loaded();
        if let Some(count) = loaded.get_mut(&of)
            && *count > 1
        {
            *count -= 1;
            return;
        }
        loaded.remove(&of);
        for phase in Phase::ALL {
            let labels = CallLabels {
                plugin: of.plugin.clone(),
                phase: phase.name(),
                digest: of.digest.clone(),
            };
            self.seconds.remove(&labels);
            self.fuel.remove(&labels);
            self.writes.remove(&labels);
            for kind in CallFailure::KINDS {
                self.errors.remove(&errors(&labels, kind));
            }
        }
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<DigestLabels, usize>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn errors(labels: &CallLabels, kind: &'static str) -> ErrorLabels {
    ErrorLabels {
        plugin: labels.plugin.clone(),
        phase: labels.phase,
        kind,
        digest: labels.digest.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use prometheus_client::encoding::text;
    use trainyard_model::plugin::{Busy, Limit};

    use super::*;

    fn plugin(digest: char) -> PluginId {
        PluginId {
            name: "torch".into(),
            version: "1.0.0".into(),
            digest: format!("sha256:{}", digest.to_string().repeat(64)).into(),
        }
    }

    fn call(metrics: &CallMetrics, plugin: &PluginId) {
        let failures = [
            CallFailure::NotLoaded(String::new()),
            CallFailure::limit(Limit::Writes(1)),
            CallFailure::Busy(Busy::Pool),
            CallFailure::Trap {
                kind: String::new(),
                message: None,
            },
            CallFailure::Busy(Busy::Open {
                calls: 5,
                within: 60,
            }),
            CallFailure::Busy(Busy::OpenEverywhere {
                namespaces: 3,
                within: 600,
            }),
        ];
        let ends = failures.iter().map(Some).chain([None]);
        for (error, phase) in ends.zip(Phase::ALL.into_iter().cycle()) {
            assert!(error.is_none_or(|error| CallFailure::KINDS.contains(&error.kind())));
            metrics.count(&PluginCall {
                plugin,
                phase,
                took: Duration::ZERO,
                fuel: Some(1),
                writes: 1,
                error,
            });
        }
    }

    #[test]
    fn the_series_of_a_digest_end_with_the_last_plugin_that_has_it() {
        let metrics = CallMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let series = |digest: char| {
            let mut all = String::new();
            text::encode(&mut all, &registry).unwrap();
            all.matches(&format!(
                "digest=\"sha256:{}\"",
                digest.to_string().repeat(12)
            ))
            .count()
        };
        let [old, new] = ['a', 'b'].map(plugin);
        // Two generations have it, with different settings.
        for plugin in [&old, &old, &new] {
            metrics.note_loaded(plugin);
            call(&metrics, plugin);
        }
        let all = series('a');
        assert!(all > 40 && series('b') == all);
        metrics.note_dropped(&old);
        assert_eq!(series('a'), all);
        metrics.note_dropped(&old);
        assert_eq!((series('a'), series('b')), (0, all));
        assert!(metrics.loaded().len() == 1);
    }
}

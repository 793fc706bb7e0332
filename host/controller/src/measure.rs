//! Plugins whose calls are measured.

use std::{sync::Arc, time::Instant};

use trainyard_model::{
    call::Call,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
};

use crate::{
    metrics::{Metrics, PluginCall},
    spans,
};

/// A plugin with a span and metrics for each call.
struct MeasuredPlugin {
    plugin: Arc<dyn Plugin>,
    metrics: Arc<Metrics>,
}

/// Wraps a plugin so that its calls are measured.
pub fn measured(plugin: Arc<dyn Plugin>, metrics: &Arc<Metrics>) -> Arc<dyn Plugin> {
    metrics.plugin_loaded(&plugin.info().id);
    Arc::new(MeasuredPlugin {
        plugin,
        metrics: metrics.clone(),
    })
}

impl Drop for MeasuredPlugin {
    fn drop(&mut self) {
        self.metrics.plugin_dropped(&self.plugin.info().id);
    }
}

impl Plugin for MeasuredPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        self.plugin.info()
    }

    fn prepare(&self) {
        self.plugin.prepare();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let id = &self.info().id;
        let span = tracing::info_span!("plugin call", plugin = %id, %phase);
        let started = Instant::now();
        let finished = span.in_scope(|| self.plugin.run(phase, call));
        let took = started.elapsed();
        self.metrics.plugin_called(&PluginCall {
            plugin: id,
            phase,
            took,
            fuel: finished.fuel,
            writes: finished.call.writes().len() as u64,
            error: finished.end.as_ref().err(),
        });
        // After the lookup, the plugin is called again.
        let failed = finished.end.as_ref().err();
        let failed = failed.filter(|error| !matches!(error, CallFailure::Missing(_)));
        if let Some(error) = failed {
            // The line of the reconcile has the whole error.
            tracing::info!(parent: &span, kind = error.kind(), "the call failed and its writes are discarded");
            tracing::debug!(parent: &span, %error, "the call failed");
        }
        tracing::debug!(parent: &span, ?took, fuel = finished.fuel, "the plugin call ended");
        let outcome = finished
            .end
            .as_ref()
            .map_or_else(CallFailure::kind, |()| "ok");
        spans::end(&span, ("outcome", outcome), failed.is_some());
        finished
    }
}

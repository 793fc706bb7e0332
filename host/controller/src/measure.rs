//! Policies whose calls are measured.

use std::{sync::Arc, time::Instant};

use trainyard_model::{
    call::Call,
    plugin::Plugin,
    policy::{CallFailure, CallOutcome, Phase, Policy},
};

use crate::metrics::{Metrics, PluginCall};

/// A policy with a span and metrics for each call.
struct MeasuredPolicy {
    policy: Arc<dyn Policy>,
    metrics: Arc<Metrics>,
}

/// Wraps a policy so that its calls are measured.
pub fn measured(policy: Arc<dyn Policy>, metrics: &Arc<Metrics>) -> Arc<dyn Policy> {
    Arc::new(MeasuredPolicy {
        policy,
        metrics: metrics.clone(),
    })
}

impl Policy for MeasuredPolicy {
    fn plugin(&self) -> &Arc<Plugin> {
        self.policy.plugin()
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let id = &self.plugin().id;
        let span = tracing::info_span!("plugin call", plugin = %id, %phase);
        let started = Instant::now();
        let finished = span.in_scope(|| self.policy.run(phase, call));
        let took = started.elapsed();
        self.metrics.plugin_called(&PluginCall {
            plugin: id,
            phase,
            took,
            fuel: finished.fuel,
            writes: finished.call.writes().len() as u64,
            error: finished.end.as_ref().err(),
        });
        if let Err(error) = &finished.end
            && !matches!(error, CallFailure::Missing(_))
        {
            // The line of the reconcile has the whole error.
            tracing::info!(parent: &span, kind = error.kind(), "the call failed and its writes are discarded");
            tracing::debug!(parent: &span, %error, "the call failed");
        }
        tracing::debug!(parent: &span, ?took, fuel = finished.fuel, "the plugin call ended");
        finished
    }
}

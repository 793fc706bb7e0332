//! Policies that are not called for a while once their calls used up their limits again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use trainyard_model::call::Call;
use trainyard_model::plugin::Plugin;
use trainyard_model::policy::{Busy, Ended, Finished, Phase, Policy};

use crate::breaker::{Breaker, End, Open};
use crate::metrics::Metrics;

/// A policy as it is, with a breaker for each namespace that it is called for.
struct Guarded {
    policy: Arc<dyn Policy>,
    metrics: Arc<Metrics>,
    /// The breakers of namespaces in which its calls used up their limits of late.
    breakers: Mutex<HashMap<Arc<str>, Breaker>>,
}

/// The policy, guarded: of a namespace in which its calls use up their time or their instructions again and again, it is not
/// called for a while. Other namespaces feel nothing of it: what a call needs depends on the TrainJob.
pub fn guarded(policy: Arc<dyn Policy>, metrics: &Arc<Metrics>) -> Arc<dyn Policy> {
    Arc::new(Guarded {
        policy,
        metrics: metrics.clone(),
        breakers: Mutex::default(),
    })
}

impl Guarded {
    fn breakers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Breaker>> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, namespace: &str) -> Result<(), Open> {
        match self.breakers().get_mut(namespace) {
            Some(breaker) => breaker.admit(Instant::now()),
            None => Ok(()),
        }
    }

    fn ended(&self, namespace: &Arc<str>, end: End) {
        let mut breakers = self.breakers();
        if end != End::Exhausted && !breakers.contains_key(namespace) {
            return;
        }
        let now = Instant::now();
        let breaker = breakers.entry(namespace.clone()).or_default();
        if breaker.ended(end, now) {
            tracing::warn!(
                plugin = %self.plugin().id,
                namespace = &**namespace,
                "calls of the plugin used up their time or instructions again and again; it is not called for TrainJobs of this \
                 namespace for a while"
            );
        }
        breakers.retain(|_, breaker| !breaker.is_idle(now));
        let open = breakers.values().filter(|breaker| breaker.is_open());
        self.metrics.breakers_open(&self.plugin().id, open.count());
    }
}

impl Policy for Guarded {
    fn plugin(&self) -> &Arc<Plugin> {
        self.policy.plugin()
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> Finished {
        let namespace = call.job().namespace.clone();
        if let Err(open) = self.admit(&namespace) {
            let busy = Busy::Open {
                // At least one: none would say that it is over.
                seconds: open.wait.as_secs() + 1,
                calls: open.calls,
                within: open.within.as_secs(),
            };
            return Finished {
                call,
                end: Err(Ended::Busy(busy)),
                fuel: None,
            };
        }
        let finished = self.policy.run(phase, call);
        let end = match &finished.end {
            Err(ended) if ended.is_exhausted() => End::Exhausted,
            Err(Ended::Missing(_)) => End::Early,
            _ => End::InTime,
        };
        self.ended(&namespace, end);
        finished
    }
}

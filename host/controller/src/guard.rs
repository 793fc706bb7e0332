//! Plugins behind circuit breakers: a plugin that keeps exhausting its limits is not called for a while.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use trainyard_model::{
    call::Call,
    plugin::{Busy, CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
};

use crate::{
    breaker::{Breaker, CallEnd, Open},
    metrics::Metrics,
};

/// The namespace and phase that a breaker is for.
type Caller = (Arc<str>, Phase);

/// A plugin with a breaker for each namespace and phase.
struct GuardedPlugin {
    plugin: Arc<dyn Plugin>,
    metrics: Arc<Metrics>,
    breakers: Mutex<Breakers>,
}

#[derive(Default)]
struct Breakers {
    /// The breakers of namespaces in which its calls exhausted their limits recently.
    by_caller: HashMap<Caller, Breaker>,
    /// How many of them are counted as open.
    open: i64,
}

/// Guards a plugin: in a namespace in which its calls keep exhausting their time or their instructions, it is not called for a while. Other
/// namespaces are not affected, because what a call needs depends on the TrainJob.
pub fn guarded(plugin: Arc<dyn Plugin>, metrics: &Arc<Metrics>) -> Arc<dyn Plugin> {
    Arc::new(GuardedPlugin {
        plugin,
        metrics: metrics.clone(),
        breakers: Mutex::default(),
    })
}

impl GuardedPlugin {
    fn breakers(&self) -> MutexGuard<'_, Breakers> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, caller: &Caller) -> Result<(), Open> {
        let mut breakers = self.breakers();
        if breakers.by_caller.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        self.sweep(&mut breakers, now);
        let breaker = breakers.by_caller.get_mut(caller);
        breaker.map_or(Ok(()), |breaker| breaker.admit(now))
    }

    fn ended(&self, caller: &Caller, end: CallEnd) {
        let mut breakers = self.breakers();
        if end != CallEnd::Exhausted && !breakers.by_caller.contains_key(caller) {
            return;
        }
        let now = Instant::now();
        let breaker = breakers.by_caller.entry(caller.clone()).or_default();
        if breaker.ended(end, now) {
            let (namespace, phase) = caller;
            tracing::warn!(
                plugin = %self.info().id,
                namespace = &**namespace,
                %phase,
                "the plugin is paused for TrainJobs in this namespace, because its calls keep exhausting their time or fuel"
            );
        }
        self.sweep(&mut breakers, now);
    }

    /// Removes idle breakers, and counts how many are open.
    fn sweep(&self, breakers: &mut Breakers, now: Instant) {
        breakers
            .by_caller
            .retain(|_, breaker| !breaker.is_idle(now));
        let all = breakers.by_caller.values();
        let open = all.filter(|breaker| breaker.is_open()).count();
        let open = i64::try_from(open).unwrap_or(i64::MAX);
        let by = open - std::mem::replace(&mut breakers.open, open);
        self.metrics.breakers_changed(&self.info().id, by);
    }
}

impl Drop for GuardedPlugin {
    fn drop(&mut self) {
        let open = self.breakers().open;
        self.metrics.breakers_changed(&self.info().id, -open);
    }
}

impl Plugin for GuardedPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        self.plugin.info()
    }

    fn prepare(&self) {
        self.plugin.prepare();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let caller = (call.job().namespace.clone(), phase);
        if let Err(open) = self.admit(&caller) {
            let busy = Busy::Open {
                calls: open.calls,
                within: open.within.as_secs(),
            };
            return CallOutcome {
                call,
                end: Err(CallFailure::Busy(busy)),
                fuel: None,
            };
        }
        let finished = self.plugin.run(phase, call);
        let end = match &finished.end {
            Err(ended) if ended.is_exhausted() => CallEnd::Exhausted,
            Err(CallFailure::Missing(_)) => CallEnd::Early,
            _ => CallEnd::InTime,
        };
        self.ended(&caller, end);
        finished
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;
    use trainyard_model::{contract::VERSION, manifest::Manifest, plugin_info::Settings};

    use super::*;
    use crate::queue::{Backoff, Queue};

    struct Named(Arc<PluginInfo>);

    impl Plugin for Named {
        fn info(&self) -> &Arc<PluginInfo> {
            &self.0
        }

        fn run(&self, _: Phase, call: Box<Call>) -> CallOutcome {
            CallOutcome {
                call,
                end: Ok(()),
                fuel: None,
            }
        }
    }

    fn guard() -> GuardedPlugin {
        let manifest = json!({
            "name": "two", "version": "1.0.0", "contract": VERSION, "activeWhen": "plugins", "phases": ["transform", "build"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
        GuardedPlugin {
            plugin: Arc::new(Named(plugin.into())),
            metrics: Arc::new(Metrics::new(&Queue::new(Backoff::default()))),
            breakers: Mutex::default(),
        }
    }

    /// The old plugin may still be called when the new one is, and takes its breakers along when it is dropped.
    #[test]
    fn plugins_of_one_name_are_counted_together_until_one_is_replaced() {
        let (old, new) = (guard(), guard());
        let new = GuardedPlugin {
            plugin: new.plugin.clone(),
            metrics: old.metrics.clone(),
            breakers: Mutex::default(),
        };
        let metrics = old.metrics.clone();
        let opens = |guard: &GuardedPlugin| {
            for _ in 0..5 {
                let caller = (Arc::from("team"), Phase::Build);
                guard.admit(&caller).unwrap();
                guard.ended(&caller, CallEnd::Exhausted);
            }
        };
        let shows = |count: u8| {
            let line = format!("trainyard_plugin_breakers_open{{plugin=\"two\"}} {count}");
            let text = metrics.text().unwrap();
            assert!(text.lines().any(|it| it == line), "{text}");
        };
        opens(&old);
        shows(1);
        opens(&new);
        shows(2);
        drop(old);
        shows(1);
        drop(new);
        shows(0);
    }

    #[test]
    fn phases_have_separate_breakers() {
        let guard = guard();
        let [transform, build] =
            [Phase::Transform, Phase::Build].map(|phase| (Arc::from("team"), phase));
        for _ in 0..5 {
            guard.admit(&build).unwrap();
            guard.ended(&build, CallEnd::Exhausted);
            guard.admit(&transform).unwrap();
            guard.ended(&transform, CallEnd::InTime);
        }
        guard.admit(&build).unwrap_err();
        guard.admit(&transform).unwrap();
        guard.admit(&(Arc::from("other"), Phase::Build)).unwrap();
    }
}

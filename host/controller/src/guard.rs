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
    breakers: Arc<Breakers>,
}

/// The breakers of namespaces in which the calls of a plugin exhausted their limits recently.
#[derive(Default)]
struct Breakers(Mutex<HashMap<Caller, Breaker>>);

impl Breakers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, Breaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts those that are open. One that is idle is closed, also if the plugin is no longer called.
    fn open(&self) -> usize {
        let mut breakers = self.lock();
        sweep(&mut breakers, Instant::now());
        breakers
            .values()
            .filter(|breaker| breaker.is_open())
            .count()
    }
}

/// Removes idle breakers.
fn sweep(breakers: &mut HashMap<Caller, Breaker>, now: Instant) {
    breakers.retain(|_, breaker| !breaker.is_idle(now));
}

/// Guards a plugin: in a namespace in which its calls keep exhausting their time or their instructions, it is not called for a while. Other
/// namespaces are not affected, because what a call needs depends on the TrainJob.
pub fn guarded(plugin: Arc<dyn Plugin>, metrics: &Arc<Metrics>) -> Arc<dyn Plugin> {
    Arc::new(GuardedPlugin::new(plugin, metrics))
}

impl GuardedPlugin {
    fn new(plugin: Arc<dyn Plugin>, metrics: &Metrics) -> Self {
        let breakers: Arc<Breakers> = Arc::default();
        let counted = Arc::downgrade(&breakers);
        let count = move || Some(counted.upgrade()?.open());
        metrics.count_breakers(&plugin.info().id, count);
        Self { plugin, breakers }
    }

    fn admit(&self, caller: &Caller) -> Result<(), Open> {
        let mut breakers = self.breakers.lock();
        if breakers.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        sweep(&mut breakers, now);
        let breaker = breakers.get_mut(caller);
        breaker.map_or(Ok(()), |breaker| breaker.admit(now))
    }

    fn ended(&self, caller: &Caller, end: CallEnd) {
        let mut breakers = self.breakers.lock();
        if end != CallEnd::Exhausted && !breakers.contains_key(caller) {
            return;
        }
        let breaker = breakers.entry(caller.clone()).or_default();
        if breaker.ended(end, Instant::now()) {
            let (namespace, phase) = caller;
            tracing::warn!(
                plugin = %self.info().id,
                namespace = &**namespace,
                %phase,
                "the plugin is paused for TrainJobs in this namespace, because its calls keep exhausting their time or fuel"
            );
        }
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

    use std::time::Duration;

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

    fn metrics() -> Metrics {
        Metrics::new(&Queue::new(Backoff::default()))
    }

    fn guard(metrics: &Metrics) -> GuardedPlugin {
        let manifest = json!({
            "name": "two", "version": "1.0.0", "contract": VERSION, "activeWhen": "plugins", "phases": ["transform", "build"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
        GuardedPlugin::new(Arc::new(Named(plugin.into())), metrics)
    }

    /// The old plugin may still be called when the new one is, and takes its breakers along when it is dropped.
    #[test]
    fn plugins_of_one_name_are_counted_together_until_one_is_replaced() {
        let metrics = metrics();
        let [old, new] = [(); 2].map(|()| guard(&metrics));
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
        shows(0);
        opens(&old);
        shows(1);
        opens(&new);
        shows(2);
        drop(old);
        shows(1);
        drop(new);
        assert!(!metrics.text().unwrap().contains("plugin=\"two\""));
    }

    /// A generation that is held for TrainJobs which have started may have a plugin that is never called again.
    #[test]
    fn a_plugin_that_is_not_called_any_more_is_not_shown_as_paused() {
        let breakers = Breakers::default();
        let mut breaker = Breaker::default();
        let Some(then) = Instant::now().checked_sub(Duration::from_secs(600)) else {
            return;
        };
        for _ in 0..5 {
            breaker.ended(CallEnd::Exhausted, then);
        }
        assert!(breaker.is_open());
        let caller = (Arc::from("team"), Phase::Build);
        breakers.lock().insert(caller, breaker);
        assert_eq!(breakers.open(), 0);
    }

    #[test]
    fn phases_have_separate_breakers() {
        let guard = guard(&metrics());
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

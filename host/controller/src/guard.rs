//! Plugins behind circuit breakers: a plugin that keeps failing is not called for a while.

use std::{cell::Cell, sync::Arc};

use trainyard_model::{
    call::Call,
    plugin::{Busy, CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
    text::clean_to,
};

use crate::{
    breaker::{Asks, CallEnd, Caller, Ended, FailureWords, LoadedBreakers, Refusal, Turn},
    metrics::Metrics,
};

/// The most characters of a failure in words.
const WORDS: usize = 256;

/// A plugin with a breaker for each namespace and phase.
struct GuardedPlugin {
    plugin: Arc<dyn Plugin>,
    breakers: Arc<LoadedBreakers>,
}

/// Guards a plugin. In a namespace in which its calls keep exhausting their time or their instructions, it is not called for a while. Other
/// namespaces are not affected, because what a call needs depends on the TrainJob. If calls fail in several namespaces and succeed in none, the
/// first failure is enough in each.
pub fn guarded(plugin: Arc<dyn Plugin>, metrics: &Arc<Metrics>) -> Arc<dyn Plugin> {
    Arc::new(GuardedPlugin::new(plugin, metrics))
}

thread_local! {
    static ASKS: Cell<Asks> = const { Cell::new(Asks::ToUse) };
}

/// Renders to find out whether plugins fail: calls are made although they fail in all namespaces. The rendering must call plugins on this thread.
pub(crate) fn judging<T>(render: impl FnOnce() -> T) -> T {
    /// Restores the value, also after a panic.
    struct Restored(Asks);
    impl Drop for Restored {
        fn drop(&mut self) {
            ASKS.set(self.0);
        }
    }
    let _restored = Restored(ASKS.replace(Asks::ToJudge));
    render()
}

impl GuardedPlugin {
    fn new(plugin: Arc<dyn Plugin>, metrics: &Metrics) -> Self {
        let breakers = Arc::new(LoadedBreakers::new(plugin.info().clone()));
        metrics.breakers().add(&breakers);
        Self { plugin, breakers }
    }

    /// Logs what the end of a call changes.
    fn log(&self, (namespace, phase): &Caller, ended: Ended) {
        let plugin = &self.info().id;
        if ended.turn == Some(Turn::Begins) {
            let failing = self.breakers.failing();
            let failing = failing.filter(|(of, _)| of == phase);
            let last = failing.and_then(|(_, failing)| failing.last);
            tracing::error!(
                %plugin,
                %phase,
                last = last.map(|last| last.words),
                "the plugin is paused for all namespaces, because its calls fail in several and succeed in none"
            );
        } else if ended.turn == Some(Turn::Ends) {
            tracing::info!(%plugin, %phase, "a call succeeded, so the plugin is no longer paused for all namespaces");
        } else if ended.opened && !self.breakers.is_paused_in(*phase) {
            tracing::warn!(
                %plugin,
                namespace = &**namespace,
                %phase,
                "the plugin is paused for TrainJobs in this namespace, because its calls keep exhausting their time or fuel"
            );
        }
    }
}

/// Returns what the end of a call says about the plugin.
fn end_of(end: &Result<(), CallFailure>) -> (CallEnd, Option<FailureWords>) {
    let failure = match end {
        Ok(()) | Err(CallFailure::Refused(_)) => return (CallEnd::Answered, None),
        Err(CallFailure::NotLoaded(_) | CallFailure::Missing(_)) => {
            return (CallEnd::Undecided, None);
        }
        Err(failure) => failure,
    };
    let kind = failure.kind();
    // A panic's message, and the paths of a broken contract, may have content of the TrainJob.
    let words = match failure {
        CallFailure::Trap { kind, .. } => format!("trapped: {kind}"),
        CallFailure::Broke(faulted) => format!(
            "broke a rule of the contract{}",
            faulted
                .method
                .map(|method| format!(" in `{method}`"))
                .unwrap_or_default()
        ),
        other => other.to_string(),
    };
    let words = FailureWords {
        kind,
        words: clean_to(&words, WORDS),
    };
    match failure.is_exhausted() {
        true => (CallEnd::Exhausted, Some(words)),
        false if failure.is_transient() => (CallEnd::Undecided, None),
        false => (CallEnd::Failed, Some(words)),
    }
}

const fn busy(refusal: Refusal) -> CallFailure {
    CallFailure::Busy(match refusal {
        Refusal::Namespace(open) => Busy::Open {
            calls: open.calls,
            within: open.within.as_secs(),
        },
        Refusal::Everywhere { namespaces, within } => Busy::OpenEverywhere { namespaces, within },
    })
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
        let asks = ASKS.get();
        if let Err(refusal) = self.breakers.admit(&caller, asks) {
            return CallOutcome {
                call,
                end: Err(busy(refusal)),
                fuel: None,
            };
        }
        let mut finished = self.plugin.run(phase, call);
        let ended = self.breakers.ended((&caller, asks), end_of(&finished.end));
        self.log(&caller, ended);
        // If calls fail in all namespaces, the host is not what is slow.
        if matches!(finished.end, Err(CallFailure::Busy(Busy::WallClock(_))))
            && self.breakers.is_paused_in(phase)
        {
            finished.end = Err(busy(Refusal::everywhere()));
        }
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

    impl GuardedPlugin {
        fn admit(&self, caller: &Caller) -> Result<(), Refusal> {
            self.breakers.admit(caller, Asks::ToUse)
        }

        fn ended(&self, caller: &Caller, end: CallEnd) {
            self.breakers.ended((caller, Asks::ToUse), (end, None));
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

    #[test]
    fn phases_have_separate_breakers() {
        let guard = guard(&metrics());
        let [transform, build] =
            [Phase::Transform, Phase::Build].map(|phase| (Arc::from("team"), phase));
        for _ in 0..5 {
            guard.admit(&build).unwrap();
            guard.ended(&build, CallEnd::Exhausted);
            guard.admit(&transform).unwrap();
            guard.ended(&transform, CallEnd::Answered);
        }
        guard.admit(&build).unwrap_err();
        guard.admit(&transform).unwrap();
        guard.admit(&(Arc::from("other"), Phase::Build)).unwrap();
    }
}

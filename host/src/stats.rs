//! Measures plugin calls, for `render --stats`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use trainyard_model::{
    call::Call,
    plugin::{CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
};

use crate::{output::Table, report};

/// The calls of a run.
#[derive(Default)]
pub(crate) struct Stats(Mutex<Vec<CallUsage>>);

/// The resources that one call used.
struct CallUsage {
    train_job: String,
    plugin: String,
    phase: Phase,
    /// `None` if the call is not metered.
    fuel: Option<u64>,
    bytes: u64,
    writes: u64,
    took: Duration,
    /// `ok`, or the kind of the failure.
    outcome: &'static str,
}

/// A plugin whose calls are measured.
struct Measured {
    plugin: Arc<dyn Plugin>,
    stats: Arc<Stats>,
}

impl Plugin for Measured {
    fn info(&self) -> &Arc<PluginInfo> {
        self.plugin.info()
    }

    fn prepare(&self) {
        self.plugin.prepare();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        // Loading the code is not part of the call.
        self.prepare();
        let started = Instant::now();
        let finished = self.plugin.run(phase, call);
        let took = started.elapsed();
        let (job, meter) = (finished.call.job(), finished.call.meter());
        self.stats.add(CallUsage {
            train_job: format!("{}/{}", job.namespace, job.name),
            plugin: self.info().id.name.to_string(),
            phase,
            fuel: finished.fuel,
            bytes: meter.bytes(),
            writes: meter.writes(),
            took,
            outcome: finished.end.as_ref().err().map_or("ok", |end| end.kind()),
        });
        finished
    }
}

impl Stats {
    /// Wraps a plugin to measure its calls.
    pub(crate) fn measure(self: &Arc<Self>, plugin: Arc<dyn Plugin>) -> Arc<dyn Plugin> {
        let stats = self.clone();
        Arc::new(Measured { plugin, stats })
    }

    fn add(&self, usage: CallUsage) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(usage);
    }

    /// Prints the calls to standard error, by TrainJob and in order.
    pub(crate) fn print(&self) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.sort_by(|a, b| a.train_job.cmp(&b.train_job));
        let mut table = Table::new(&[
            "trainjob", "plugin", "phase", "fuel", "bytes", "writes", "time", "outcome",
        ]);
        for call in calls.iter() {
            let fuel = call
                .fuel
                .map_or_else(|| "-".to_owned(), |fuel| fuel.to_string());
            table.row([
                call.train_job.as_str(),
                &call.plugin,
                call.phase.name(),
                &fuel,
                &call.bytes.to_string(),
                &call.writes.to_string(),
                &format!("{:.1?}", call.took),
                call.outcome,
            ]);
        }
        table.lines().for_each(report::note);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::{Value, json};
    use trainyard_model::{
        job::Job, manifest::Manifest, plugin_info::Settings, record::Record, session::Session,
    };

    use super::*;

    /// A plugin that must be prepared before a call.
    struct Deferred {
        plugin: Arc<PluginInfo>,
        is_loaded: AtomicBool,
    }

    impl Plugin for Deferred {
        fn info(&self) -> &Arc<PluginInfo> {
            &self.plugin
        }

        fn prepare(&self) {
            self.is_loaded.store(true, Ordering::Relaxed);
        }

        fn run(&self, _: Phase, call: Box<Call>) -> CallOutcome {
            assert!(self.is_loaded.load(Ordering::Relaxed));
            CallOutcome {
                call,
                end: Ok(()),
                fuel: None,
            }
        }
    }

    #[test]
    fn code_is_loaded_before_the_call_is_measured() {
        let manifest = json!({
            "name": "a", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "always", "phases": ["build"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let plugin = PluginInfo::new(manifest, "sha256:a", Settings::default()).unwrap();
        let stats = Arc::new(Stats::default());
        let plugin = stats.measure(Arc::new(Deferred {
            plugin: Arc::new(plugin),
            is_loaded: AtomicBool::new(false),
        }));
        let mut session = Session::new(Arc::new(Job::default()), Record::new("a", "a", "a"));
        let called = session.call(&*plugin, Phase::Build, 0, Arc::new(Value::Null));
        called.unwrap();
        assert_eq!(stats.0.lock().unwrap().len(), 1);
    }
}

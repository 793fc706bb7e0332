//! What each plugin call of a run uses, for `render --stats`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use trainyard_model::{
    call::Call,
    plugin::Plugin,
    policy::{CallOutcome, Phase, Policy},
};

use crate::{output::Table, report};

/// The calls of a run.
#[derive(Default)]
pub(crate) struct Stats(Mutex<Vec<CallUsage>>);

/// What one call used.
struct CallUsage {
    train_job: String,
    plugin: String,
    phase: Phase,
    /// `None` if nothing counts it.
    fuel: Option<u64>,
    bytes: u64,
    writes: u64,
    took: Duration,
    /// `ok`, or how it failed in one word.
    outcome: &'static str,
}

/// A policy as it is, with each call noted.
struct Measured {
    policy: Arc<dyn Policy>,
    stats: Arc<Stats>,
}

impl Policy for Measured {
    fn plugin(&self) -> &Arc<Plugin> {
        self.policy.plugin()
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let started = Instant::now();
        let finished = self.policy.run(phase, call);
        let took = started.elapsed();
        let (job, meter) = (finished.call.job(), finished.call.meter());
        self.stats.add(CallUsage {
            train_job: format!("{}/{}", job.namespace, job.name),
            plugin: self.plugin().id.name.to_string(),
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
    /// Returns the policy with its calls noted here.
    pub(crate) fn measure(self: &Arc<Self>, policy: Arc<dyn Policy>) -> Arc<dyn Policy> {
        let stats = self.clone();
        Arc::new(Measured { policy, stats })
    }

    fn add(&self, usage: CallUsage) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(usage);
    }

    /// Prints the calls to standard error, by TrainJob. Those of one TrainJob stand in their order.
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

//! What follows when the plugins are replaced.

use std::{convert::Infallible, future::pending, time::Duration};

use super::Work;
use crate::generation::Generation;

/// The time between two TrainJobs that follow. All of them at once would be a burst of calls, and would delay new TrainJobs of their
/// namespaces: each one is at least read and rendered.
const BETWEEN: Duration = Duration::from_millis(20);

impl Work {
    /// Lets TrainJobs follow each replacement of the plugins, until the future is dropped.
    pub(super) async fn follow_generations(&self) -> Infallible {
        let mut replacements = self.reconciler.generations.replacements();
        loop {
            let held = replacements.borrow_and_update().clone();
            self.show(&held.running);
            self.queue_unstarted();
            if replacements.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// Shows the running plugins in metrics.
    fn show(&self, generation: &Generation) {
        let plugins = generation.renderer().generation().plugins();
        let ids = plugins.map(|plugin| &plugin.id);
        self.metrics.set_plugins(generation.plan(), ids);
    }

    /// Queues the TrainJobs that have not started, one after the other. Those that are up to date make no call, so the next one does not wait for
    /// them: most are, in a step of a rollout. In the shadow mode, all of them are compared again.
    pub(crate) fn queue_unstarted(&self) {
        let mut after = Duration::ZERO;
        for (key, job) in self.stores.jobs.objects() {
            if self.shadow.is_some() || self.reconciler.follows(&key, &job) {
                self.add(&key, after);
                if !self.reconciler.has_followed(&key) {
                    after += BETWEEN;
                }
            }
        }
    }
}

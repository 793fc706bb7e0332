//! The fixed threads that plugin calls run on: a call blocks its thread, so that probes and webhooks need others.

use rayon::prelude::*;

/// A fixed number of blocking threads.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    pub(crate) fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let name = |at| format!("trainyard-call-{at}");
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(name)
            .build()
            .map(Self)
    }

    /// Runs `run` on one of the pool's threads, and waits for it.
    pub fn run<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        self.0.install(run)
    }

    /// Runs `run` on one of the pool's threads, and does not wait for it.
    pub fn spawn(&self, run: impl FnOnce() + Send + 'static) {
        self.0.spawn(run);
    }

    /// Runs `run` for each item on the pool's threads; results stand in the order of the items.
    pub fn run_each<T: Sync, R: Send>(&self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        self.0.install(|| items.par_iter().map(&run).collect())
    }
}

//! The fixed threads that plugin calls run on: a call blocks its thread, so that probes and webhooks need others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;

/// What ran on one of the pool's threads panicked. Rust's panic hook has told where, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host panicked, which is a bug of Trainyard: please report it, with what it said")]
pub struct Panicked;

/// A fixed number of blocking threads.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    pub(crate) fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let name = |at| format!("trainyard-call-{at}");
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(name)
            // Without one, rayon ends the whole process, and with it the TrainJobs that have nothing to do with the panic.
            .panic_handler(|_| {
                tracing::error!("what ran beside others panicked, which is a bug of Trainyard")
            })
            .build()
            .map(Self)
    }

    /// Runs `run` on one of the pool's threads, and waits for it. A panic of it is the caller's.
    pub fn run<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        self.0.install(run)
    }

    /// Runs `run` on one of the pool's threads, and does not wait for it. A panic of it is logged, and goes no further.
    pub fn spawn(&self, run: impl FnOnce() + Send + 'static) {
        self.0.spawn(run);
    }

    /// Runs `run` for each item on the pool's threads; results stand in the order of the items. A panic is the result of its
    /// item, and keeps no other from its own.
    pub fn run_each<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Sync,
    ) -> Vec<Result<R, Panicked>> {
        // Unwind-safe: policies and renderers are never written, and the store of a call, which is, goes with its call.
        let one = |item| catch_unwind(AssertUnwindSafe(|| run(item))).map_err(|_| Panicked);
        self.0.install(|| items.par_iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_panic_is_the_result_of_its_item() {
        let pool = Pool::new(2).unwrap();
        let results = pool.run_each(&[1, 2, 3], |item| match item {
            2 => panic!("a bug"),
            item => item * 10,
        });
        assert_eq!(results, [Ok(10), Err(Panicked), Ok(30)]);
    }

    #[test]
    fn a_panic_ends_neither_the_process_nor_the_thread() {
        let pool = Pool::new(1).unwrap();
        pool.spawn(|| panic!("a bug"));
        let (done, wait) = mpsc::channel();
        pool.spawn(move || done.send("the next").unwrap());
        assert_eq!(wait.recv(), Ok("the next"));
    }
}

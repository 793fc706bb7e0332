//! The threads for plugin calls. Calls block their thread, so probes use other threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;

/// A task on one of the pool's threads panicked. Rust's panic hook has printed where and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host panicked; this is a bug in Trainyard, please report it with the message")]
pub struct Panicked;

/// A fixed number of blocking threads.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    /// The number of results per thread that can wait for `take`: small enough that large results fit into memory, and large enough that
    /// threads seldom wait for each other.
    pub const AHEAD: usize = 4;

    pub(crate) fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let name = |at| format!("trainyard-call-{at}");
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(name)
            // By default, rayon aborts the process, which would affect all TrainJobs.
            .panic_handler(|_| {
                tracing::error!("a background task panicked; this is a bug in Trainyard")
            })
            .build()
            .map(Self)
    }

    /// Runs a closure on one of the pool's threads and waits for it. Its panic is propagated to the caller.
    pub fn run<R: Send>(&self, run: impl FnOnce() -> R + Send) -> R {
        self.0.install(run)
    }

    /// Runs a closure on one of the pool's threads without waiting for it. Its panic is logged.
    pub fn spawn(&self, run: impl FnOnce() + Send + 'static) {
        self.0.spawn(run);
    }

    /// Runs `run` for each item on the pool's threads, and passes the results to `take` in the order of the items. At most
    /// [`Self::AHEAD`] results per thread wait for `take`. A panic is the result of its item, and does not affect the others.
    ///
    /// # Errors
    /// The first error of `take`. No further item is run.
    pub fn run_in_order<T: Sync, R: Send, E>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Sync,
        mut take: impl FnMut(&T, Result<R, Panicked>) -> Result<(), E>,
    ) -> Result<(), E> {
        // This is unwind-safe: plugins and renderers are immutable, and the store of a call is dropped with it.
        let one = |item| catch_unwind(AssertUnwindSafe(|| run(item))).map_err(|_| Panicked);
        for some in items.chunks(Self::AHEAD * self.0.current_num_threads()) {
            let results: Vec<_> = self.0.install(|| some.par_iter().map(one).collect());
            let mut results = some.iter().zip(results);
            results.try_for_each(|(item, result)| take(item, result))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use super::*;

    #[test]
    fn a_panic_is_the_result_of_its_item() {
        let pool = Pool::new(2).unwrap();
        let mut results = Vec::new();
        let run = |item: &i32| match item {
            2 => panic!("a bug"),
            item => item * 10,
        };
        let done: Result<(), ()> = pool.run_in_order(&[1, 2, 3], run, |item, result| {
            results.push((*item, result));
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(results, [(1, Ok(10)), (2, Err(Panicked)), (3, Ok(30))]);
    }

    #[test]
    fn few_results_wait_to_be_taken() {
        let pool = Pool::new(2).unwrap();
        let items: Vec<usize> = (0..1000).collect();
        let (waiting, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let run = |item: &usize| {
            let now = waiting.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            *item
        };
        let mut taken = 0;
        let done = pool.run_in_order(&items, run, |item, result| {
            assert_eq!((*item, result), (taken, Ok(taken)));
            taken += 1;
            waiting.fetch_sub(1, Ordering::SeqCst);
            if taken < 500 { Ok(()) } else { Err("enough") }
        });
        assert_eq!((done, taken), (Err("enough"), 500));
        assert!(most.into_inner() <= 2 * Pool::AHEAD);
        assert!(waiting.into_inner() < 2 * Pool::AHEAD);
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

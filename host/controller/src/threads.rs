//! The threads on which TrainJobs and runtimes are read and rendered. Plugins may block them, so API calls, probes and watches run
//! elsewhere.

use std::{
    any::Any,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use trainyard_model::{deadline::Deadline, text::clean};

use crate::{fair::FairSemaphore, guard::judging};

/// Runs a task on a thread that may block for as long as a plugin may run.
pub type Spawn = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The number of threads, and the share of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The number of all threads.
    pub threads: NonZeroUsize,
    /// The most threads that work for one namespace at once.
    pub share: NonZeroUsize,
}

impl Sizes {
    /// Returns the sizes for that many cores. One namespace may keep all cores busy; a quarter more threads, and at least one, are outside
    /// of its share.
    #[must_use]
    pub fn for_cores(cores: NonZeroUsize) -> Self {
        Self {
            threads: cores.saturating_add((cores.get() / 4).max(1)),
            share: cores,
        }
    }
}

/// The threads, which namespaces use in turns.
#[derive(Clone)]
pub struct Threads {
    spawn: Spawn,
    free: FairSemaphore,
    limit: Duration,
    /// Whether tasks find out if plugins fail.
    are_judging: bool,
    ends: CancellationToken,
}

/// Why a task on a thread has no result.
#[derive(Debug)]
pub(crate) enum TaskError {
    /// The task panicked with this message.
    Panicked(String),
    /// The threads end with the process.
    Abandoned,
}

impl Threads {
    /// Threads from `spawn`. Each task has a deadline of `limit`.
    #[must_use]
    pub fn new(spawn: Spawn, sizes: Sizes, limit: Duration) -> Self {
        Self {
            spawn,
            free: FairSemaphore::new(sizes.threads.get(), sizes.share),
            limit,
            are_judging: false,
            ends: CancellationToken::new(),
        }
    }

    /// Returns the same threads, with another deadline for each task.
    pub(crate) fn with_limit(&self, limit: Duration) -> Self {
        Self {
            limit,
            ..self.clone()
        }
    }

    /// Returns the same threads for tasks that find out whether plugins fail ([`judging`]).
    pub(crate) fn judging(&self) -> Self {
        Self {
            are_judging: true,
            ..self.clone()
        }
    }

    /// Abandons all tasks because the process ends.
    pub(crate) fn end(&self) {
        self.ends.cancel();
    }

    /// Runs a task on a thread when it is the namespace's turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        namespace: &Arc<str>,
        work: impl FnOnce(&Deadline) -> T + Send + 'static,
    ) -> Result<T, TaskError> {
        let (limit, are_judging) = (self.limit, self.are_judging);
        let span = tracing::Span::current();
        let done = async {
            let thread = self.free.acquire(namespace, 1).await;
            let (done, wait) = oneshot::channel();
            (self.spawn)(Box::new(move || {
                let _thread = thread;
                // The receiver is gone if the reconcile was canceled.
                if done.is_closed() {
                    return;
                }
                let work = || {
                    let work = || work(&Deadline::after(limit));
                    if are_judging { judging(work) } else { work() }
                };
                // Unwind-safe: shared state is never written, and the task's own state is dropped.
                let result = span.in_scope(|| catch_unwind(AssertUnwindSafe(work)));
                let _ = done.send(result);
            }));
            wait.await
        };
        match self.ends.run_until_cancelled(done).await {
            Some(Ok(Ok(result))) => Ok(result),
            Some(Ok(Err(panic))) => Err(TaskError::Panicked(panic_message(&*panic))),
            Some(Err(_)) | None => Err(TaskError::Abandoned),
        }
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    clean(text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::sync::{Mutex, mpsc};

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;
    use crate::fair::Worker;

    const LIMIT: Duration = Duration::from_secs(60);

    fn threads(spawn: Spawn, threads: usize, share: usize) -> Threads {
        let [threads, share] = [threads, share].map(|count| NonZeroUsize::new(count).unwrap());
        Threads::new(spawn, Sizes { threads, share }, LIMIT)
    }

    fn spawned() -> Spawn {
        Arc::new(|task| drop(std::thread::spawn(task)))
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_task_and_keeps_its_message() {
        let threads = threads(spawned(), 1, 1);
        let team = Arc::from("team");
        let bad = threads.run(&team, |_| panic!("a bug")).await;
        assert!(
            matches!(&bad, Err(TaskError::Panicked(text)) if text == "a bug"),
            "{:?}",
            bad
        );
        assert_eq!(threads.run(&team, |_| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_no_thread_takes_is_abandoned() {
        let threads = threads(Arc::new(drop), 1, 1);
        let team = Arc::from("team");
        for _ in 0..3 {
            let result = threads.run(&team, |_| ()).await;
            assert!(matches!(result, Err(TaskError::Abandoned)), "{result:?}");
        }
    }

    /// Sixteen of one namespace that never end leave a thread, and every worker, for another one.
    #[tokio::test]
    async fn slow_work_of_one_namespace_does_not_delay_another() {
        let threads = threads(spawned(), 3, 2);
        let workers = FairSemaphore::new(1, NonZeroUsize::MAX);
        let [slow, other] = ["slow", "other"].map(Arc::from);
        let (end, ended) = mpsc::channel::<()>();
        let (ended, running) = (Arc::new(Mutex::new(ended)), Arc::new(Mutex::new(0)));
        let slow = (0..16).map(async |_| {
            let worker = Worker::of(&workers, &slow).await;
            let (ended, running) = (ended.clone(), running.clone());
            let work = move |_: &Deadline| {
                *running.lock().unwrap() += 1;
                let _ = ended.lock().unwrap().recv();
            };
            worker.free_while(threads.run(&slow, work)).await
        });
        let slow = join_all(slow);
        tokio::pin!(slow);
        assert!(slow.as_mut().now_or_never().is_none());
        // A namespace never takes more than its share of the threads, and the only worker stays free.
        let other = async {
            let (worker, running) = (Worker::of(&workers, &other).await, running.clone());
            let work = move |_: &Deadline| *running.lock().unwrap();
            worker.free_while(threads.run(&other, work)).await
        };
        tokio::select! {
            running = other => assert!(running.unwrap() <= 2),
            _ = &mut slow => panic!("nothing has ended it"),
        }
        drop(end);
        assert!(slow.await.iter().all(Result::is_ok));
    }

    #[test]
    fn one_namespace_may_keep_all_cores_busy_and_never_all_threads() {
        for cores in 1..=128 {
            let cores = NonZeroUsize::new(cores).unwrap();
            let sizes = Sizes::for_cores(cores);
            assert_eq!(sizes.share, cores);
            assert!(sizes.threads > sizes.share && sizes.threads.get() <= cores.get() * 2);
        }
    }
}

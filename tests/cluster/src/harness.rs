//! Test programs whose tests share a control plane or a cluster.

use std::{
    any::Any,
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{cluster::Cluster, control_plane::ControlPlane};

/// When a test that does not end is ended. No test is measured by it.
const KILL_AFTER: Duration = Duration::from_secs(15 * 60);

type Body<S> = Box<dyn FnOnce(&S) -> Result<()> + Send>;

/// What tests share: a [`ControlPlane`], a [`Cluster`], or one of these with a controller on it.
pub trait Shared: Sized + Send + Sync + 'static {
    /// Starts it.
    ///
    /// # Errors
    /// What did not start, with the end of its log.
    fn start() -> Result<Self>;

    /// The control plane of it.
    fn plane(&self) -> &ControlPlane;

    /// Fails if a process of it ended, with the end of its log.
    ///
    /// # Errors
    /// A process ended.
    fn still_runs(&self) -> Result<()>;
}

impl Shared for ControlPlane {
    fn start() -> Result<Self> {
        Self::start()
    }

    fn plane(&self) -> &ControlPlane {
        self
    }

    fn still_runs(&self) -> Result<()> {
        self.still_runs()
    }
}

impl Shared for Cluster {
    fn start() -> Result<Self> {
        Self::start()
    }

    fn plane(&self) -> &ControlPlane {
        self.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.still_runs()
    }
}

/// A test that is handed the control plane or the cluster.
pub struct Test<S = ControlPlane> {
    name: String,
    body: Body<S>,
}

impl<S: Shared> Test<S> {
    /// A test that runs as this asynchronous function.
    pub fn new<F>(name: impl Into<String>, body: F) -> Self
    where
        F: AsyncFnOnce(&S) -> Result<()> + Send + 'static,
    {
        Self {
            name: name.into(),
            body: Box::new(move |shared| {
                shared.plane().block_on(async {
                    tokio::time::timeout(KILL_AFTER, body(shared))
                        .await
                        .context("it does not end")?
                })
            }),
        }
    }

    fn into_trial(self, file: &str, stage: Arc<Stage>) -> Trial {
        let body = self.body;
        Trial::test(format!("{file}::{}", self.name), move || {
            let turn = stage.enter::<S>();
            let shared = turn.shared.get()?;
            body(shared).map_err(|error| {
                let died = shared.still_runs().err();
                let died = died.map_or(String::new(), |died| format!("\n{died:#}"));
                Failed::from(format!("{error:#}{died}"))
            })
        })
    }
}

/// The tests of a program, file by file.
///
/// What they share is started by the first test that needs it. Of what different files share only one is there at a time: tests that
/// share something else wait until the present ones have ended, so files that share one thing are best added one after the other.
#[derive(Default)]
pub struct Program {
    trials: Vec<Trial>,
    stage: Arc<Stage>,
}

impl Program {
    /// Adds the tests of a file, whose name becomes part of theirs.
    #[must_use]
    pub fn tests<S: Shared>(mut self, file: &str, tests: Vec<Test<S>>) -> Self {
        let stage = &self.stage;
        let trials = tests.into_iter();
        self.trials
            .extend(trials.map(|test| test.into_trial(file, Arc::clone(stage))));
        self
    }

    /// Runs the tests that the command line asks for, as Rust's own test programs do. Whatever was started is gone when this returns.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

/// What the running tests share.
#[derive(Default)]
struct Stage {
    state: Mutex<State>,
    is_free: Condvar,
}

#[derive(Default)]
struct State {
    current: Option<Arc<dyn Any + Send + Sync>>,
    running: usize,
}

impl Stage {
    /// Waits until no test runs that shares something else.
    fn enter<S: Send + Sync + 'static>(&self) -> Turn<'_, S> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(current) = &state.current
                && let Ok(shared) = Arc::clone(current).downcast::<Lazy<S>>()
            {
                state.running += 1;
                let running = Running(self);
                return Turn { shared, running };
            }
            if state.running == 0 {
                // What was shared before ends first: two clusters at once are too many for a small machine.
                state.current = None;
                state.current = Some(Arc::new(Lazy::<S>(OnceLock::new())));
            } else {
                let freed = self.is_free.wait(state);
                state = freed.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// That a test runs. The stage keeps what it shares until this is dropped.
struct Turn<'a, S> {
    // It goes before the next test may start: fields are dropped in this order.
    shared: Arc<Lazy<S>>,
    #[expect(dead_code, reason = "the turn ends when it is dropped")]
    running: Running<'a>,
}

/// One of the running tests.
struct Running<'a>(&'a Stage);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let state = self.0.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.running -= 1;
        self.0.is_free.notify_all();
    }
}

struct Lazy<S>(OnceLock<Result<S, String>>);

impl<S: Shared> Lazy<S> {
    /// Starts it when it is asked for first; where that failed, every test fails by it.
    fn get(&self) -> Result<&S, Failed> {
        let shared = self
            .0
            .get_or_init(|| S::start().map_err(|error| format!("{error:#}")));
        shared.as_ref().map_err(Failed::from)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        thread,
    };

    use super::*;

    /// How many of all kinds are there.
    static THERE: AtomicUsize = AtomicUsize::new(0);

    /// One of two things that tests share.
    struct Thing<const KIND: u8>;

    impl<const KIND: u8> Thing<KIND> {
        fn get(turn: &Turn<'_, Self>) {
            turn.shared.0.get_or_init(|| {
                assert_eq!(THERE.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                Ok(Self)
            });
        }
    }

    impl<const KIND: u8> Drop for Thing<KIND> {
        fn drop(&mut self) {
            THERE.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn tests_sharing_an_environment_run_together_and_others_wait() {
        let stage = Stage::default();
        let together = Barrier::new(3);
        let (ended, order) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let turn = stage.enter::<Thing<1>>();
                    Thing::get(&turn);
                    together.wait();
                    ended.send(1).unwrap();
                });
            }
            scope.spawn(|| {
                together.wait();
                let turn = stage.enter::<Thing<2>>();
                Thing::get(&turn);
                ended.send(2).unwrap();
            });
        });
        drop(stage);
        assert_eq!(order.try_iter().collect::<Vec<i32>>(), [1, 1, 2]);
        assert_eq!(THERE.load(Ordering::SeqCst), 0);
    }
}

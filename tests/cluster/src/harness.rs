//! Groups of tests that share a control plane or a cluster.

use std::{
    any::Any,
    env,
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{cluster::Cluster, control_plane::ControlPlane};

/// The time after which a hanging test fails. No test measures it.
const KILL_AFTER: Duration = Duration::from_secs(15 * 60);

type Body<S> = Box<dyn FnOnce(&S) -> Result<()> + Send>;

/// An environment that tests share: a [`ControlPlane`], a [`Cluster`], or one of these with a controller.
pub trait Shared: Sized + Send + Sync + 'static {
    /// Starts it.
    ///
    /// # Errors
    /// A process did not start: with the end of its log.
    fn start() -> Result<Self>;

    /// Returns its control plane.
    fn plane(&self) -> &ControlPlane;

    /// Checks that all its processes are running.
    ///
    /// # Errors
    /// A process exited: with the end of its log.
    fn still_runs(&self) -> Result<()>;

    /// Returns what a failed test prints in addition to its error.
    fn last_words(&self) -> String {
        String::new()
    }
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

/// An environment apart from that of the other tests of a group, for those that change what all its namespaces share.
pub struct Own<S>(pub S);

impl<S: Shared> Shared for Own<S> {
    fn start() -> Result<Self> {
        S::start().map(Self)
    }

    fn plane(&self) -> &ControlPlane {
        self.0.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.0.still_runs()
    }

    fn last_words(&self) -> String {
        self.0.last_words()
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

    fn last_words(&self) -> String {
        self.kubelet().last_words()
    }
}

/// A test in a shared environment.
pub struct Test<S = ControlPlane> {
    name: String,
    body: Body<S>,
}

impl<S: Shared> Test<S> {
    /// Returns a test that runs an asynchronous function.
    pub fn new<F>(name: impl Into<String>, body: F) -> Self
    where
        F: AsyncFnOnce(&S) -> Result<()> + Send + 'static,
    {
        Self::lasting(name, Duration::ZERO, body)
    }

    /// Returns a test that runs an asynchronous function, and fails as hanging only this much later than others.
    pub fn lasting<F>(name: impl Into<String>, time: Duration, body: F) -> Self
    where
        F: AsyncFnOnce(&S) -> Result<()> + Send + 'static,
    {
        Self {
            name: name.into(),
            body: Box::new(move |shared| {
                shared.plane().block_on(async {
                    tokio::time::timeout(KILL_AFTER + time, body(shared))
                        .await
                        .context("the test did not end in time")?
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
                Failed::from(format!("{error:#}{died}{}", shared.last_words()))
            })
        })
    }
}

/// The tests of a group, file by file.
///
/// The first test that needs an environment starts it. Only one environment exists at a time: tests in another one wait until the running
/// tests have ended, so files that share an environment are best added one after another.
#[derive(Default)]
pub struct Program {
    trials: Vec<Trial>,
    stage: Arc<Stage>,
}

impl Program {
    /// Adds the tests of a file, whose name becomes part of their names.
    #[must_use]
    pub fn tests<S: Shared>(mut self, file: &str, tests: Vec<Test<S>>) -> Self {
        let stage = &self.stage;
        let trials = tests.into_iter();
        self.trials
            .extend(trials.map(|test| test.into_trial(file, Arc::clone(stage))));
        self
    }

    /// Adds a test that this machine cannot run, which is reported as ignored.
    #[must_use]
    pub fn ignored(mut self, file: &str, name: &str) -> Self {
        let trial = Trial::test(format!("{file}::{name}"), || Ok(()));
        self.trials.push(trial.with_ignored_flag(true));
        self
    }

    /// Returns whether the command line selects a test to run, so that only what it needs is prepared.
    #[must_use]
    pub fn runs(file: &str, name: &str) -> bool {
        let arguments = arguments();
        let full = format!("{file}::{name}");
        let is_in = |filter: &String| full.contains(filter.as_str());
        !arguments.list
            && arguments.filter.as_ref().is_none_or(is_in)
            && !arguments.skip.iter().any(is_in)
    }

    /// Runs the tests that the command line selects, like Rust's own test programs. The environments are stopped when this returns.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&arguments(), self.trials).exit_code()
    }

    /// Returns the first argument of this program: the group of tests to run. Those that follow are as for Rust's own test programs.
    #[must_use]
    pub fn group() -> Option<String> {
        env::args().nth(1)
    }
}

/// Returns the arguments after the group, which stands for the program's name.
fn arguments() -> Arguments {
    Arguments::from_iter(env::args().skip(1))
}

/// The environment of the running tests.
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
    /// Waits until no test in another environment runs.
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
                // The previous environment is stopped first, because two clusters at once are too many for a small machine.
                state.current = None;
                state.current = Some(Arc::new(Lazy::<S>(OnceLock::new())));
            } else {
                let freed = self.is_free.wait(state);
                state = freed.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// A running test. The stage keeps its environment until this is dropped.
struct Turn<'a, S> {
    // Fields are dropped in this order, so the environment is released before the next test can start.
    shared: Arc<Lazy<S>>,
    #[expect(dead_code, reason = "the turn ends when it is dropped")]
    running: Running<'a>,
}

/// Counts a running test until it is dropped.
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
    /// Starts the environment for the first test. If that fails, every test fails with the same error.
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

    /// The number of environments that exist.
    static THERE: AtomicUsize = AtomicUsize::new(0);

    /// One of two environments.
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

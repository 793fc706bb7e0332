//! Test programs whose tests share one control plane, or one cluster.

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// When a test that does not end is ended. No test is measured by it.
const KILL_AFTER: Duration = Duration::from_secs(15 * 60);

type Body<S> = Box<dyn FnOnce(&S) -> Result<()> + Send>;

/// What the tests of a program share: a [`ControlPlane`], or a [`Cluster`].
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

    fn into_trial(self, shared: Arc<Lazy<S>>) -> Trial {
        let body = self.body;
        Trial::test(self.name, move || {
            let shared = shared.get()?;
            body(shared).map_err(|error| {
                let died = shared.still_runs().err();
                let died = died.map_or(String::new(), |died| format!("\n{died:#}"));
                Failed::from(format!("{error:#}{died}"))
            })
        })
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

/// Runs the tests that the command line asks for, as Rust's own test programs do, around one control plane or cluster.
///
/// It is started by the first test, and is gone when this returns.
pub fn run<S: Shared>(tests: Vec<Test<S>>) -> ExitCode {
    let shared = Arc::new(Lazy(OnceLock::new()));
    let trials = tests
        .into_iter()
        .map(|test| test.into_trial(Arc::clone(&shared)))
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

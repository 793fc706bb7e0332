//! Test programs whose tests share one control plane.

use crate::binaries::Binaries;
use crate::control_plane::ControlPlane;
use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

type Body = Box<dyn FnOnce(&ControlPlane) -> Result<()> + Send>;

/// A test that is handed the control plane.
pub struct Test {
    name: String,
    body: Body,
}

impl Test {
    /// A test that runs as this asynchronous function.
    pub fn new<F>(name: impl Into<String>, body: F) -> Self
    where
        F: AsyncFnOnce(&ControlPlane) -> Result<()> + Send + 'static,
    {
        Self {
            name: name.into(),
            body: Box::new(move |plane| plane.block_on(body(plane))),
        }
    }

    fn into_trial(self, shared: Arc<Shared>) -> Trial {
        let body = self.body;
        Trial::test(self.name, move || {
            body(shared.plane()?).map_err(|error| Failed::from(format!("{error:#}")))
        })
    }
}

#[derive(Default)]
struct Shared(OnceLock<Result<ControlPlane, String>>);

impl Shared {
    /// Starts the control plane when it is asked for first; where that failed, every test fails by it.
    fn plane(&self) -> Result<&ControlPlane, Failed> {
        let plane = self.0.get_or_init(|| {
            Binaries::find_or_build()
                .and_then(|binaries| ControlPlane::start(&binaries))
                .map_err(|error| format!("{error:#}"))
        });
        plane.as_ref().map_err(Failed::from)
    }
}

/// Runs the tests that the command line asks for, as Rust's own test programs do, around one control plane.
///
/// The control plane is started by the first test, and is gone when this returns.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let shared = Arc::new(Shared::default());
    let trials = tests
        .into_iter()
        .map(|test| test.into_trial(Arc::clone(&shared)))
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

//! Go programs with the reference's own code.

use std::{path::PathBuf, process::Command, sync::Mutex};

use serde_json::Value;
use trainyard_cluster::RunningOracle;

/// The environment variable with the folder of the programs. Without it, nothing is compared with them.
const FOLDER: &str = "FUZZ_REFERENCE";

/// A running program.
pub(crate) struct Reference(Mutex<RunningOracle>);

impl Reference {
    /// Starts a program; `None` if nothing is to be compared.
    pub(crate) fn start(program: &str) -> Option<Self> {
        let program = PathBuf::from(std::env::var_os(FOLDER)?).join(program);
        let started = RunningOracle::start(&mut Command::new(program));
        Some(Self(Mutex::new(started.unwrap())))
    }

    /// Returns the answer to a question.
    pub(crate) fn ask(&self, question: &Value) -> Value {
        self.0.lock().unwrap().ask(question).unwrap()
    }
}

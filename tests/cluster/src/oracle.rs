//! Go programs that answer each line of JSON with a line of JSON, such as those of `tests/reference/oracle`, which renders TrainJobs with the
//! reference's own code, and of `tests/reference/kueue`, which computes their quota with Kueue's.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::go;

const MODULE: &str = "github.com/kubeflow/trainer/v2";
/// The module that requires the same modules as the reference.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference/oracle");
const KUEUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference/kueue");

/// The built program that renders.
#[derive(Debug)]
pub struct Oracle {
    program: PathBuf,
    crds: PathBuf,
}

impl Oracle {
    /// Builds the program into a folder; Go links it again only if it is out of date.
    ///
    /// # Errors
    /// Go is missing, or the build failed.
    pub fn build(folder: &Path) -> Result<Self> {
        let module = Path::new(FOLDER);
        let program = folder.join("oracle");
        go::build(module, &["."], &program)?;
        let crds = Self::reference()?.join("manifests/base/crds");
        Ok(Self { program, crds })
    }

    /// Returns the directory with the reference's source.
    ///
    /// # Errors
    /// Go is missing, or the download failed.
    pub fn reference() -> Result<PathBuf> {
        go::source(Path::new(FOLDER), MODULE)
    }

    /// Starts the program.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self) -> Result<RunningOracle> {
        RunningOracle::start(Command::new(&self.program).arg(&self.crds))
    }
}

/// The built program that computes quota.
#[derive(Debug)]
pub struct Kueue {
    program: PathBuf,
}

impl Kueue {
    /// Builds the program into a folder; Go links it again only if it is out of date.
    ///
    /// # Errors
    /// Go is missing, or the build failed.
    pub fn build(folder: &Path) -> Result<Self> {
        let program = folder.join("kueue");
        go::build(Path::new(KUEUE), &["."], &program)?;
        Ok(Self { program })
    }

    /// Starts the program.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self) -> Result<RunningOracle> {
        RunningOracle::start(&mut Command::new(&self.program))
    }
}

/// One of the programs, running until this value is dropped.
#[derive(Debug)]
pub struct RunningOracle {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl RunningOracle {
    /// Starts a program.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self {
            questions: process.stdin.take().context("no standard input")?,
            answers: BufReader::new(process.stdout.take().context("no standard output")?),
            process,
        })
    }

    /// Asks one question, as the `main.go` of the program describes it.
    ///
    /// # Errors
    /// The program ended.
    pub fn ask(&mut self, question: &Value) -> Result<Value> {
        // One write, because the program is woken by each.
        self.questions
            .write_all(format!("{question}\n").as_bytes())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the program exited at {question}");
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for RunningOracle {
    fn drop(&mut self) {
        // It then waits for the next question.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

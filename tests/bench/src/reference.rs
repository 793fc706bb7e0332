//! The reference, which says itself how long it takes.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::json;

const MODULE: &str = "github.com/kubeflow/trainer/v2";

/// The program of `tests/reference/oracle`, running.
pub struct Reference {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    /// Builds and starts it; none where there is no Go.
    ///
    /// # Errors
    /// It does not build or start.
    pub fn start() -> Result<Option<Self>> {
        if Command::new("go").arg("version").output().is_err() {
            return Ok(None);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reference/oracle");
        let go = |args: &[&str]| -> Result<String> {
            let mut go = Command::new("go");
            let output = go.args(args).current_dir(&folder).env("CGO_ENABLED", "0");
            let output = output.output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "go {args:?}: {said}");
            Ok(String::from_utf8(output.stdout)?)
        };
        let program = tempfile::NamedTempFile::new()?.into_temp_path();
        let to = program.to_str().context("the folder's name is no text")?;
        go(&[
            "build",
            "-mod=readonly",
            "-trimpath",
            "-ldflags",
            "-s -w",
            "-o",
            to,
            ".",
        ])?;
        let module = go(&["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", MODULE])?;
        let mut process = Command::new(&program)
            .arg(Path::new(module.trim()).join("manifests/base/crds"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Some(Self {
            questions: process.stdin.take().context("no standard input")?,
            answers: BufReader::new(process.stdout.take().context("no standard output")?),
            process,
        }))
    }

    /// How long it takes to build the objects of the one TrainJob of an input so many times.
    ///
    /// # Errors
    /// It ends.
    pub fn time(&mut self, input: &str, times: u64) -> Result<Duration> {
        #[derive(Deserialize)]
        struct Measured {
            nanoseconds: u64,
        }
        writeln!(self.questions, "{}", json!({"yaml": input, "times": times}))?;
        self.questions.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let measured: Measured = serde_json::from_str(&line).context("the reference ended")?;
        Ok(Duration::from_nanos(measured.nanoseconds))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It waits for the next question.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

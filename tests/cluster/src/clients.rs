//! The reference's clients, as programs that decode an object into their types and encode it again.

use std::{
    io::{Seek as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{go, python::Packages};

/// The folder of both programs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference/types");

/// The result of decoding and encoding one object.
#[derive(Clone, Debug)]
pub struct Round {
    /// The object as the client would send it back.
    pub object: Value,
    /// The fields that the client does not know, if it reports them.
    pub unknown: Vec<String>,
}

/// The types of the reference's Go module.
#[derive(Debug)]
pub struct GoTypes {
    binary: PathBuf,
    _folder: TempDir,
}

impl GoTypes {
    /// Builds the program, which takes seconds if its packages are in Go's cache.
    ///
    /// # Errors
    /// Go is missing, or the build failed.
    pub fn build() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let binary = folder.path().join("types");
        go::build(Path::new(FOLDER), &["."], &binary)?;
        Ok(Self {
            binary,
            _folder: folder,
        })
    }

    /// Returns objects in which every field of the types is set.
    ///
    /// # Errors
    /// The program failed.
    pub fn fill(&self) -> Result<Vec<Value>> {
        converse(Command::new(&self.binary).arg("fill"), &[])
    }

    /// Returns each object after a round trip, or the reason why it does not decode.
    ///
    /// # Errors
    /// The program failed.
    pub fn round(&self, objects: &[Value]) -> Result<Vec<Result<Round, String>>> {
        let answers = converse(Command::new(&self.binary).arg("round"), objects)?;
        rounds(answers, objects.len())
    }
}

/// The models of the Python client.
#[derive(Debug)]
pub struct PythonModels(Packages);

impl PythonModels {
    /// Installs the client into the cache, once.
    ///
    /// # Errors
    /// Python is missing, or the installation failed.
    pub fn install() -> Result<Self> {
        Ok(Self(Packages::kubeflow()?))
    }

    /// Returns each object after a round trip, or the reason why it does not decode.
    ///
    /// # Errors
    /// The program failed.
    pub fn round(&self, objects: &[Value]) -> Result<Vec<Result<Round, String>>> {
        let mut command = self.0.run(&Path::new(FOLDER).join("round.py"));
        rounds(converse(&mut command, objects)?, objects.len())
    }
}

/// Writes one object per line to a program, and reads one value per line.
fn converse(command: &mut Command, objects: &[Value]) -> Result<Vec<Value>> {
    let mut input = tempfile::tempfile()?;
    for object in objects {
        writeln!(input, "{object}")?;
    }
    input.rewind()?;
    let output = command.stdin(input).output()?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let lines = output.stdout.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| Ok(serde_json::from_slice(line)?))
        .collect()
}

fn rounds(answers: Vec<Value>, wanted: usize) -> Result<Vec<Result<Round, String>>> {
    ensure!(
        answers.len() == wanted,
        "{} answers for {wanted} objects",
        answers.len()
    );
    answers.into_iter().map(round).collect()
}

fn round(mut answer: Value) -> Result<Result<Round, String>> {
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Ok(Err(error.to_owned()));
    }
    let unknown = answer.get("unknown").and_then(Value::as_array);
    let unknown = unknown.into_iter().flatten();
    let unknown = unknown
        .filter_map(|field| Some(field.as_str()?.to_owned()))
        .collect();
    match answer.get_mut("object").map(Value::take) {
        Some(object) => Ok(Ok(Round { object, unknown })),
        None => bail!("the answer is neither an object nor an error: {answer}"),
    }
}

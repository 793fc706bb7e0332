//! Go programs with the reference's own code, which answer each line of JSON with a line of JSON.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Mutex,
};

use serde_json::Value;

/// The environment variable with the folder of the programs. Without it, nothing is compared with them.
const FOLDER: &str = "FUZZ_REFERENCE";

/// A running program.
pub(crate) struct Reference(Mutex<Pipes>);

struct Pipes {
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Ends when `questions` is closed.
    _program: Child,
}

impl Reference {
    /// Starts a program; `None` if nothing is to be compared.
    pub(crate) fn start(program: &str) -> Option<Self> {
        let program = PathBuf::from(std::env::var_os(FOLDER)?).join(program);
        let started = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut program = started.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Some(Self(Mutex::new(Pipes {
            questions: program.stdin.take().unwrap(),
            answers: BufReader::new(program.stdout.take().unwrap()),
            _program: program,
        })))
    }

    /// Returns the answer to a question.
    pub(crate) fn ask(&self, question: &Value) -> Value {
        let mut pipes = self.0.lock().unwrap();
        // One write, because the program is woken by each.
        let line = format!("{question}\n");
        pipes.questions.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        pipes.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("{error}: {answer:?} for {question}"))
    }
}

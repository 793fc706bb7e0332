//! What the reference makes of an input: asked by the Go program of `tests/reference/oracle`, or as it is checked in.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::difference::Answer;

const MODULE: &str = "github.com/kubeflow/trainer/v2";

/// The answers to an input: more than one where the reference does not always give the same.
pub(super) type Answers = Vec<Answer>;

/// What is checked in of an input: a line of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Kept {
    case: String,
    /// The digest of the input that was answered.
    input: String,
    answers: Answers,
}

/// A file of answers that are checked in.
fn file(name: &str) -> PathBuf {
    folder().join(name)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/oracle")
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The answers that a file keeps, by the names of their inputs; whoever changes an input has to ask again.
pub(super) fn kept(name: &str, inputs: &BTreeMap<String, String>) -> BTreeMap<String, Answers> {
    let text = fs::read_to_string(file(name)).unwrap();
    let kept = text
        .lines()
        .map(|line| serde_json::from_str::<Kept>(line).unwrap());
    let known: BTreeMap<_, _> = kept.map(|kept| (kept.case.clone(), kept)).collect();
    let stale = |(name, text): &(&String, &String)| {
        known
            .get(*name)
            .is_none_or(|kept| kept.input != digest(text))
    };
    let stale: Vec<_> = inputs.iter().filter(stale).map(|(name, _)| name).collect();
    let gone: Vec<_> = known
        .keys()
        .filter(|name| !inputs.contains_key(*name))
        .collect();
    assert!(
        stale.is_empty() && gone.is_empty(),
        "tests/reference/oracle/{name} is out of date, run `make expected-reference`, which needs Go: \
         new or changed are {stale:?}; gone are {gone:?}"
    );
    known
        .into_iter()
        .map(|(name, kept)| (name, kept.answers))
        .collect()
}

/// Writes a file of answers.
pub(super) fn keep(
    name: &str,
    inputs: &BTreeMap<String, String>,
    answers: &BTreeMap<String, Answers>,
) {
    let line = |(name, text): (&String, &String)| {
        let kept = Kept {
            case: name.clone(),
            input: digest(text),
            answers: answers[name].clone(),
        };
        serde_json::to_string(&kept).unwrap() + "\n"
    };
    fs::write(file(name), inputs.iter().map(line).collect::<String>()).unwrap();
}

/// How often the reference is asked: always with its plugins in two orders.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runs {
    /// Once with each.
    Few,
    /// Often enough to see nearly all that depends on the order of its maps.
    Many,
}

impl Runs {
    fn number(self) -> u32 {
        match self {
            Self::Few => 2,
            Self::Many => 16,
        }
    }
}

/// The program and the folder of the CRDs: built once, whichever test comes first.
static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();

fn build() -> (PathBuf, PathBuf) {
    // Go links it anew only if it is out of date. With these flags, it shares packages with the reference's controller, which the
    // tests of the cluster build.
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oracle");
    let to = program.to_str().unwrap();
    go(&[
        "build",
        "-mod=readonly",
        "-trimpath",
        "-ldflags",
        "-s -w",
        "-o",
        to,
        ".",
    ]);
    let module = go(&["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", MODULE]);
    (
        program,
        Path::new(module.trim()).join("manifests/base/crds"),
    )
}

/// The reference, running.
pub(super) struct Reference {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    /// Builds and starts it.
    pub(super) fn start() -> Self {
        let (program, crds) = BUILT.get_or_init(build);
        let mut process = Command::new(program)
            .arg(crds)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            questions: process.stdin.take().unwrap(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// Asks what becomes of the documents of a text.
    pub(super) fn ask(&mut self, text: &str, runs: Runs) -> Answers {
        #[derive(Deserialize)]
        struct Response {
            answers: Answers,
        }
        writeln!(
            self.questions,
            "{}",
            json!({"yaml": text, "runs": runs.number()})
        )
        .unwrap();
        self.questions.flush().unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the reference ended at:\n{text}");
        serde_json::from_str::<Response>(&line).unwrap().answers
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It waits for the next question.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn go(args: &[&str]) -> String {
    let output = Command::new("go")
        .args(args)
        .current_dir(folder())
        .env("CGO_ENABLED", "0")
        .output();
    let output = output.unwrap_or_else(|error| panic!("this test needs Go: {error}"));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(
        output.status.success(),
        "go {args:?}: {}",
        text(output.stderr)
    );
    text(output.stdout)
}

//! The reference's answers for an input, from the Go program of `tests/reference/oracle` or checked in.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use trainyard_cluster::{Oracle, RunningOracle};

use super::difference::Answer;
use crate::common::root;

/// The answers for an input. There are several if the reference is not deterministic.
pub(super) type Answers = Vec<Answer>;

/// The checked-in answers for an input: a line of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Kept {
    case: String,
    /// The digest of the input.
    input: String,
    answers: Answers,
}

/// A file of answers that are checked in.
fn file(name: &str) -> PathBuf {
    root().join("tests/reference/oracle").join(name)
}

fn digest(text: &str) -> String {
    let mut digest = hex::encode(Sha256::digest(text.as_bytes()));
    digest.truncate(16);
    digest
}

/// Returns the checked-in answers of a file, by the names of their inputs. A changed input requires a new answer.
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

/// Checks that the answers of a file are those of the reference. `UPDATE_EXPECTED` writes the file first.
pub(super) fn agree(
    name: &str,
    inputs: &BTreeMap<String, String>,
    answers: &BTreeMap<String, Answers>,
) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        keep(name, inputs, answers);
    }
    for (input, kept) in kept(name, inputs) {
        assert_eq!(kept, answers[&input], "{input}");
    }
}

/// Writes a file of answers.
fn keep(name: &str, inputs: &BTreeMap<String, String>, answers: &BTreeMap<String, Answers>) {
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

/// How often the reference renders an input, with its plugins in two orders.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runs {
    /// Once with each order.
    Few,
    /// Often enough to observe nearly all results that depend on the order of its maps.
    Many,
    /// Often enough to observe which of a container's resources it takes for GPUs: one of two may come first in every eighth run.
    Most,
}

impl Runs {
    /// As often as the answers to an input need that are checked in.
    pub(super) fn to_keep(input: &str) -> Self {
        let counts_gpus = input.contains("xgboost") && input.contains("nvidia.com/gpumem");
        if counts_gpus { Self::Most } else { Self::Many }
    }

    fn number(self) -> u32 {
        match self {
            Self::Few => 2,
            Self::Many => 16,
            Self::Most => 128,
        }
    }
}

/// The running reference.
pub(super) struct Reference(RunningOracle);

impl Reference {
    /// Starts it. The first test builds it.
    pub(super) fn start() -> Self {
        static BUILT: OnceLock<Oracle> = OnceLock::new();
        let build = || Oracle::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self(BUILT.get_or_init(build).start().unwrap())
    }

    /// Returns the answer for the documents of a text.
    pub(super) fn ask(&mut self, text: &str, runs: Runs) -> Answers {
        let question = json!({"yaml": text, "runs": runs.number()});
        let mut response = self.0.ask(&question).unwrap();
        serde_json::from_value(response["answers"].take()).unwrap()
    }
}

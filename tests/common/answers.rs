//! The answers of a Go program that are checked in, so that most tests need no Go: a file has a line for each input.

use std::{collections::BTreeMap, fmt::Debug, fs, path::PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::root;

/// The answers for an input: a line of the file.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct RecordedAnswers<A> {
    case: String,
    /// The digest of the input.
    input: String,
    answers: Vec<A>,
}

/// Returns a file of the folder `tests/reference`.
fn file(path: &str) -> PathBuf {
    root().join("tests/reference").join(path)
}

fn digest(text: &str) -> String {
    let mut digest = hex::encode(Sha256::digest(text.as_bytes()));
    digest.truncate(16);
    digest
}

/// Returns the checked-in answers of a file, by the names of their inputs. A changed input requires a new answer.
pub fn recorded<A: DeserializeOwned>(
    path: &str,
    inputs: &BTreeMap<String, String>,
) -> BTreeMap<String, Vec<A>> {
    let text = fs::read_to_string(file(path)).unwrap();
    let recorded = text
        .lines()
        .map(|line| serde_json::from_str::<RecordedAnswers<A>>(line).unwrap());
    let known: BTreeMap<_, _> = recorded
        .map(|recorded| (recorded.case.clone(), recorded))
        .collect();
    let stale = |(name, text): &(&String, &String)| {
        known
            .get(*name)
            .is_none_or(|recorded| recorded.input != digest(text))
    };
    let stale: Vec<_> = inputs.iter().filter(stale).map(|(name, _)| name).collect();
    let gone: Vec<_> = known
        .keys()
        .filter(|name| !inputs.contains_key(*name))
        .collect();
    assert!(
        stale.is_empty() && gone.is_empty(),
        "tests/reference/{path} is out of date, run `make expected-reference`, which needs Go: \
         new or changed are {stale:?}; gone are {gone:?}"
    );
    known
        .into_iter()
        .map(|(name, recorded)| (name, recorded.answers))
        .collect()
}

/// Checks that the answers of a file are these. `UPDATE_EXPECTED` writes the file first.
pub fn agree<A: Serialize + DeserializeOwned + Clone + Debug + PartialEq>(
    path: &str,
    inputs: &BTreeMap<String, String>,
    answers: &BTreeMap<String, Vec<A>>,
) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        keep(path, inputs, answers);
    }
    for (input, recorded) in recorded::<A>(path, inputs) {
        assert_eq!(recorded, answers[&input], "{input}");
    }
}

/// Writes a file of answers.
fn keep<A: Serialize + Clone>(
    path: &str,
    inputs: &BTreeMap<String, String>,
    answers: &BTreeMap<String, Vec<A>>,
) {
    let line = |(name, text): (&String, &String)| {
        let recorded = RecordedAnswers {
            case: name.clone(),
            input: digest(text),
            answers: answers[name].clone(),
        };
        serde_json::to_string(&recorded).unwrap() + "\n"
    };
    fs::write(file(path), inputs.iter().map(line).collect::<String>()).unwrap();
}

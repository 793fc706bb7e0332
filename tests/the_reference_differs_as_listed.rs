//! What a TrainJob becomes differs from what the reference makes of it where `tests/reference/divergences.md` says so, and nowhere
//! else; each row of its table is shown by each case that it names.
//!
//! The reference's answers for the cases are checked in, so that no Go is needed. `make test-reference` asks the reference itself,
//! anew; `make expected-reference` writes the answers that are checked in.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod difference;
mod normal;
mod reference;
mod rows;
mod seen;
mod table;
mod trainyard;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use self::{
    difference::{Answer, differences},
    reference::{Answers, Reference},
    rows::ROWS,
    seen::Documents,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
}

/// Cases whose names start so are of policies that the reference does not have.
const WITHOUT_COUNTERPART: &str = "dra-";

/// The inputs of the cases by their names.
fn inputs() -> BTreeMap<String, String> {
    let case = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path.join("input.yaml")).unwrap())
    };
    let cases = fs::read_dir(folder()).unwrap().map(case);
    cases
        .filter(|(name, _)| !name.starts_with(WITHOUT_COUNTERPART))
        .collect()
}

/// The rows that the differences on an input show, and the differences that no row lists.
fn sort(
    input: &str,
    trainyard: &Answer,
    reference: &[Answer],
) -> (BTreeSet<&'static str>, Vec<String>) {
    let documents = Documents::read(input);
    let (mut shown, mut unlisted) = (BTreeSet::new(), Vec::new());
    for difference in differences(trainyard, reference) {
        let seen = documents.see(&difference);
        let mut rows = ROWS.iter().filter(|row| (row.lists)(&seen)).peekable();
        if rows.peek().is_none() {
            unlisted.push(difference.to_string());
        }
        shown.extend(rows.map(|row| row.id));
    }
    (shown, unlisted)
}

#[test]
fn in_each_case() {
    let inputs = inputs();
    let answers = reference::kept(&inputs);
    let mut shown: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, input) in &inputs {
        let trainyard = trainyard::of_case(&folder().join(name));
        let (rows, unlisted) = sort(input, &trainyard, &answers[name]);
        for row in rows {
            shown.entry(row).or_default().insert(name.clone());
        }
        wrong.extend(
            unlisted
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "not in tests/reference/divergences.md:\n{}",
        wrong.join("\n")
    );
    for (row, cases) in table::read() {
        let of_row = shown.remove(row.as_str()).unwrap_or_default();
        let others: Vec<_> = cases.difference(&of_row).collect();
        assert!(
            others.is_empty(),
            "`{row}` is not shown by {others:?}, but by {of_row:?}"
        );
    }
}

#[test]
fn each_row_is_in_the_document_and_has_a_matcher() {
    let listed: Vec<_> = table::read().into_iter().map(|(id, _)| id).collect();
    let matched: Vec<_> = ROWS.iter().map(|row| row.id).collect();
    assert_eq!(listed, matched);
    assert_eq!(
        matched.iter().collect::<BTreeSet<_>>().len(),
        matched.len(),
        "an id stands twice"
    );
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn the_checked_in_answers_are_the_references() {
    let inputs = inputs();
    let mut reference = Reference::start();
    let answers: BTreeMap<String, Answers> = inputs
        .iter()
        .map(|(name, text)| (name.clone(), reference.ask(text)))
        .collect();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        reference::keep(&inputs, &answers);
    }
    for (name, kept) in reference::kept(&inputs) {
        assert_eq!(kept, answers[&name], "{name}");
    }
}

//! `trainyard validate --no-plugins` agrees with an API server on each input of the table in `tests/cluster/inputs`: the same verdict and
//! fields, with the same wording.
//!
//! The table has the server's answers, and `tests/cluster/tests/schema_agrees_with_the_api_server.rs` compares it with a real one. That
//! test also proves that the schema check has the server's wording, so the two are compared here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;
use trainyard_cluster::Input;
use trainyard_schema::documents::Kind;
use trainyard_structural::{Options, Outcome, Schema, Violation};

use crate::common::trainyard;

/// Returns the messages for each file, with their fields, from one run of the command. An accepted file has none.
fn validated(inputs: &[Input]) -> BTreeMap<String, BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    for input in inputs {
        let file = folder.path().join(format!("{}.json", input.name));
        fs::write(file, created(input).to_string()).unwrap();
    }
    let output = trainyard(folder.path(), &["validate", "--no-plugins", "-f", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let mut printed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        let Some(error) = line.strip_prefix("error: ./") else {
            assert!(line.starts_with("warning: ./"), "{line}");
            continue;
        };
        // FILE.json:1: KIND NAME: SENTENCE
        let (file, rest) = error.split_once(".json:1: ").unwrap();
        let sentence = rest.split_once(": ").unwrap().1;
        let sentence = without_advice(sentence);
        // Many objects of the table have the same name, because each is for an empty server.
        if sentence.starts_with("is a duplicate; ") {
            continue;
        }
        printed
            .entry(file.to_owned())
            .or_default()
            .insert(sentence.to_owned());
    }
    printed
}

/// Returns a sentence without the advice that only the command gives.
fn without_advice(sentence: &str) -> &str {
    let advice = [
        "; devices are counted in whole numbers",
        "; patches cannot set it, ",
        "; write an amount such as ",
        "; write it in quotes",
        "; write it without quotes: ",
    ];
    let starts = advice.iter().filter_map(|advice| sentence.find(advice));
    let end = starts.min().unwrap_or(sentence.len());
    sentence.get(..end).unwrap()
}

/// Returns the object that is sent first: for an update, the stored object.
fn created(input: &Input) -> &Value {
    input.before.as_ref().unwrap_or(&input.object)
}

/// The files for which the command reports more or other messages than a server, with these messages.
///
/// The server accepts these objects, but a controller cannot render them. `numProcPerNode: auto` is an old form, for which the command says
/// what to write, and a server's schema has only its type.
const BEYOND: [(&str, &[&str]); 3] = [
    (
        "initializer-secret-default",
        &["spec.initializer.model.secretRef.name: is required"],
    ),
    ("runtime-without-spec", &["spec: is required"]),
    (
        "trainer-processes-auto",
        &[
            "spec.trainer.numProcPerNode: `auto` is the default, unless the runtime sets a number; remove the field (the API server refuses this form; --allow-old-forms accepts it in files)",
        ],
    ),
];

/// Returns the messages of the schema check for an object that is created.
fn admitted(schemas: &BTreeMap<&str, (Schema, Options)>, input: &Input) -> Outcome {
    let (schema, options) = &schemas[input.kind()];
    schema.admit(&mut created(input).clone(), None, options)
}

/// Returns the fields for which, by the table, a created object is refused, and those that it loses, sorted.
fn fields_of_the_table(input: &Input) -> BTreeSet<String> {
    let refused = input.refused.iter().flatten().chain(&input.unknown);
    match input.before {
        Some(_) => BTreeSet::new(),
        None => refused.cloned().collect(),
    }
}

fn fields(outcome: &Outcome) -> BTreeSet<String> {
    let unknown = outcome
        .unknown
        .iter()
        .map(|unknown| unknown.path.to_string());
    let refused = outcome.errors.iter().map(Violation::field);
    refused.chain(unknown).collect()
}

fn sentences(outcome: &Outcome) -> BTreeSet<String> {
    let unknown = outcome.unknown.iter().map(ToString::to_string);
    // A server also reports that it skipped rules because of the other errors.
    let refused = outcome.errors.iter();
    let refused = refused.filter(|violation| !violation.is_rules_not_checked());
    let refused = refused.map(ToString::to_string);
    refused.chain(unknown).collect()
}

/// Returns whether a sentence of an API server only says for one more alternative of the schema what a printed one says with its advice.
fn repeats(missed: &str, printed: &BTreeSet<String>) -> bool {
    let of_alternatives = [
        "(anyOf)",
        "Checked value must be of type",
        "must be of type integer",
    ];
    let field = |sentence: &str| sentence.split(": ").next().map(str::to_owned);
    let is_alternative = of_alternatives.iter().any(|part| missed.contains(part));
    is_alternative && printed.iter().any(|known| field(known) == field(missed))
}

#[test]
fn every_input_of_the_table_has_the_recorded_verdict() {
    let schemas: BTreeMap<_, _> = Kind::ALL
        .into_iter()
        .map(|kind| {
            (
                kind.name(),
                (kind.compiled_schema().unwrap(), kind.options()),
            )
        })
        .collect();
    let inputs = Input::read_all().unwrap();
    assert!(inputs.len() >= 80, "{} inputs", inputs.len());
    // One run prints at most this many errors.
    let runs = inputs.chunks(50).flat_map(validated);
    let printed: BTreeMap<_, _> = runs.collect();
    let mut wrong = Vec::new();
    let mut beyond = BTreeMap::from(BEYOND);
    for input in &inputs {
        let outcome = admitted(&schemas, input);
        assert_eq!(
            fields(&outcome),
            fields_of_the_table(input),
            "{}",
            input.name
        );
        let found = printed.get(&input.name).cloned().unwrap_or_default();
        let wanted = match beyond.remove(&*input.name) {
            Some(sentences) => sentences.iter().map(ToString::to_string).collect(),
            None => sentences(&outcome),
        };
        let missed: Vec<_> = wanted.difference(&found).collect();
        if !found.is_subset(&wanted) || !missed.iter().all(|one| repeats(one, &found)) {
            wrong.push(format!("{}: {found:#?} instead of {wanted:#?}", input.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(beyond.is_empty(), "no such inputs: {beyond:?}");
}

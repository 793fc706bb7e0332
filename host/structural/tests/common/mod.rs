//! Compares the results of this crate with those of a real API server's code.
//!
//! The expected results are in the files of `cases`; the Go program in `oracle` wrote them.

#![allow(dead_code)]

use std::path::Path;

use serde_json::{Map, Value};
use trainyard_structural::{Options, Outcome, Schema};

/// The parts of a file of cases, each of which has a schema and objects.
pub(crate) fn read(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Compares every case of a file, and returns the number of cases.
pub(crate) fn compare(name: &str) -> usize {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for part in read(name) {
        let schema = Schema::compile(&part["schema"]).unwrap();
        for case in part["cases"].as_array().expect("cases") {
            compared += 1;
            wrong.extend(difference(&schema, case));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    compared
}

/// Returns how the result of a case differs from its answer.
pub(crate) fn difference(schema: &Schema, case: &Value) -> Option<String> {
    let name = case["name"].as_str().unwrap();
    let mut value = case["value"].clone();
    let outcome = schema.admit(&mut value, case.get("old"), &Options::default());
    let answer = &case["answer"];
    if answer["errors"][0]["field"] == "<decoding>" {
        // A server refuses the whole request with another message.
        return outcome
            .errors
            .is_empty()
            .then(|| format!("- {name}: accepted, though a server cannot decode it"));
    }
    let mut found = Map::new();
    found.insert("unknown".to_owned(), unknown(&outcome));
    found.insert("errors".to_owned(), errors(&outcome));
    found.insert("stored".to_owned(), plain(&value));
    let found = Value::Object(found);
    let expected = plain(answer);
    if found == expected {
        return None;
    }
    let differs = ["unknown", "errors", "stored"]
        .into_iter()
        .filter(|part| found[*part] != expected[*part]);
    let lines = differs.map(|part| {
        format!(
            "    {part}\n      found    {}\n      expected {}",
            found[part], expected[part]
        )
    });
    Some(format!(
        "- {name}\n{}",
        lines.collect::<Vec<_>>().join("\n")
    ))
}

fn unknown(outcome: &Outcome) -> Value {
    let mut paths: Vec<String> = outcome
        .unknown
        .iter()
        .map(|unknown| unknown.path.to_string())
        .collect();
    paths.sort();
    paths.into()
}

fn errors(outcome: &Outcome) -> Value {
    let mut errors: Vec<(String, String)> = outcome
        .errors
        .iter()
        .map(|error| (error.field(), error.body()))
        .collect();
    errors.sort();
    errors
        .into_iter()
        .map(|(field, body)| serde_json::json!({"field": field, "body": body}))
        .collect()
}

/// The value with every number as a float, because Go writes `3.0` as `3`.
pub(crate) fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), plain(value)))
            .collect(),
        other => other.clone(),
    }
}

//! YAML: reading never panics, errors are located in the text, what was read is written so that it reads back as the same value, and no
//! document hides one that comes after it.

use serde_json::Value;
use trainyard_api::yaml::{self, Document, ErrorKind, MAX_VALUE_BYTES, memory_of};
use trainyard_text::is_hidden;

/// A document that is added to the text. It must be found whatever comes before it.
const LAST: &str = "last: document";

/// Checks a text.
pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let found = yaml::read(text);
    check_places(text, &found);
    let values: Vec<Value> = found
        .iter()
        .filter_map(|document| document.as_ref().ok())
        .map(|document| document.value.clone())
        .collect();
    let memory: usize = values.iter().map(memory_of).sum();
    assert!(memory <= MAX_VALUE_BYTES, "{memory} bytes of values");
    values.iter().for_each(check_written);
    if !values.is_empty() {
        let written = yaml::write_documents(&values);
        let again: Vec<Value> = yaml::read(&written)
            .into_iter()
            .map(|document| document.unwrap().value)
            .collect();
        assert_eq!(again, values, "{written}");
    }
    check_json(text, &found);
    check_last(text, &found);
    !values.is_empty()
}

/// Documents are in order, and each error is inside of the text.
fn check_places(text: &str, found: &[Result<Document, yaml::Error>]) {
    let mut last = 0;
    let lines = text.matches(['\n', '\r']).count() + 1;
    for result in found {
        let number = match result {
            Ok(document) => {
                assert!(!document.value.is_null());
                // Errors of the fields in it name their lines.
                drop(document.text(text));
                document.number
            }
            Err(error) => {
                assert!(error.line >= 1 && error.line <= lines + 1, "{error}");
                assert!(
                    error.column >= 1 && error.column <= text.len() + 2,
                    "{error}"
                );
                error.document
            }
        };
        assert!(number > last, "document {number} after document {last}");
        last = number;
    }
}

/// A value that is written reads back as the same value, and is written in the same way again.
fn check_written(value: &Value) {
    let written = yaml::write(value);
    assert!(
        !written
            .chars()
            .any(|c| !matches!(c, '\n' | '\t') && is_hidden(c)),
        "{written:?}"
    );
    let mut again = yaml::read(&written);
    assert_eq!(again.len(), 1, "{written:?}");
    let again = again
        .remove(0)
        .unwrap_or_else(|error| panic!("{error}: {written:?}"));
    assert_eq!(again.value.to_string(), value.to_string(), "{written:?}");
    assert_eq!(yaml::write(&again.value), written);
}

/// An object in JSON is the same value in YAML.
fn check_json(text: &str, found: &[Result<Document, yaml::Error>]) {
    if !text.trim_start().starts_with('{') {
        return;
    }
    if let Ok(value) = yaml::read_json(text) {
        let [Ok(document)] = found else {
            panic!("{value} is JSON, but reads as {found:?}");
        };
        assert_eq!(document.value, value);
    }
}

/// The text does not hide a document after it.
fn check_last(text: &str, found: &[Result<Document, yaml::Error>]) {
    let ends_early = |error: &yaml::Error| matches!(error.kind, ErrorKind::TooManyValues { .. });
    if found.len() >= 1000
        || found
            .iter()
            .flat_map(|result| result.as_ref().err())
            .any(ends_early)
    {
        return;
    }
    let longer = format!("{text}\n---\n{LAST}\n");
    // A text that begins like JSON is read as JSON up to its first error, and a directive is for the document after it.
    let is_json = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{');
    if is_json
        || text
            .split(['\n', '\r'])
            .any(|line| line.trim_start_matches('\u{feff}').starts_with('%'))
    {
        return;
    }
    let read = yaml::read(&longer);
    let last = read.last().unwrap();
    let last = last
        .as_ref()
        .unwrap_or_else(|error| panic!("{error}: {longer:?}"));
    assert_eq!(
        last.value,
        serde_json::json!({"last": "document"}),
        "{longer:?}"
    );
}

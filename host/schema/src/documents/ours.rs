//! The documents in `host/schema/documents`.

use serde_json::Value;
use trainyard_api::yaml;

use super::error::DocumentError;

macro_rules! documents {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../documents/", $name, ".yaml")))),+]
    };
}

const DOCUMENTS: &[(&str, &str)] = documents![
    "container-patches",
    "env",
    "initializer-step",
    "job-set-spec",
    "override-targets",
    "patch-metadata",
    "plugin-use",
    "pod-spec-patch",
    "runtime",
    "train-job",
];

/// Returns the text of a document.
pub(super) fn text(name: &str) -> Option<&'static str> {
    let found = DOCUMENTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Parses a document.
pub(super) fn read(name: &str, text: &str) -> Result<Value, DocumentError> {
    let problem = |problem: String| DocumentError::Yaml {
        name: name.to_owned(),
        problem,
    };
    match yaml::read(text).into_iter().next() {
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => Err(problem(format!("line {}: {}", error.line, error.kind))),
        None => Err(problem("is empty".to_owned())),
    }
}

//! Prints the reference's CRDs without their descriptions: the digest `tests/reference/crds.json`.
//!
//! `go mod download -json github.com/kubeflow/trainer/v2@v2.3.0` prints the directory of the module (`Dir`); then
//! `cargo run -p trainyard-schema --example digest_reference -- DIR/manifests/base/crds/*jobs.yaml DIR/manifests/base/crds/*runtimes.yaml > tests/reference/crds.json`

use std::io::Write;

use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut kinds = Map::new();
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file)?;
        for document in trainyard_api::yaml::read(&text) {
            let crd = document
                .map_err(|error| format!("{file}: {error:?}"))?
                .value;
            let found =
                (crd.pointer("/spec/names/kind").and_then(Value::as_str)).zip(crd.get("spec"));
            let (kind, spec) =
                found.ok_or_else(|| format!("{file}: not a CustomResourceDefinition"))?;
            kinds.insert(kind.to_owned(), without_words(spec, false));
        }
    }
    let text = serde_json::to_string(&Value::Object(kinds))?;
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// A schema without descriptions and messages; a property may have either name.
fn without_words(value: &Value, names: bool) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object
                .iter()
                .filter(|(key, _)| names || !["description", "message"].contains(&key.as_str()))
                .map(|(key, value)| {
                    (
                        key.clone(),
                        without_words(value, !names && key == "properties"),
                    )
                });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| without_words(item, false))
            .collect(),
        other => other.clone(),
    }
}

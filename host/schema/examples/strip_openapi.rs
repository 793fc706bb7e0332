//! Reduces Kubernetes' OpenAPI v3 document of `batch/v1` to the definitions that a Job template refers to, without descriptions. Prints
//! JSON, one definition per line.
//!
//! ```sh
//! cargo run -p trainyard-schema --example strip_openapi -- apis__batch__v1_openapi.json > host/schema/documents/kubernetes/batch-v1.json
//! ```

use std::{collections::BTreeMap, error::Error};

use serde_json::Value;

/// The definition from which the others are reached.
const ROOT: &str = "io.k8s.api.batch.v1.JobTemplateSpec";

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: strip_openapi FILE")?;
    let document: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let all = document
        .pointer("/components/schemas")
        .ok_or("the document has no components.schemas")?;
    let mut needed = BTreeMap::new();
    let mut names = vec![ROOT.to_owned()];
    while let Some(name) = names.pop() {
        if needed.contains_key(&name) {
            continue;
        }
        let mut definition = all.get(&name).ok_or_else(|| format!("no {name}"))?.clone();
        strip(&mut definition);
        references(&definition, &mut names);
        needed.insert(name, definition);
    }
    let lines: Vec<String> = needed
        .iter()
        .map(|(name, definition)| format!("{name:?}: {definition}"))
        .collect();
    println!("{{\n{}\n}}", lines.join(",\n"));
    Ok(())
}

/// Removes descriptions. A property of that name is an object, and is kept.
fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, value| key != "description" || value.is_object());
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                names.extend(reference.rsplit('/').next().map(str::to_owned));
            }
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

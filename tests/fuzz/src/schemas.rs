//! Structural schemas with CEL rules: what is admitted is stored unchanged when it is admitted again, with the same errors, whether it is
//! created or updates another object. With the reference, errors and what is stored are also those of an API server. The schemas are those
//! of the cases of `trainyard-structural`, which a real API server has answered.

use std::{path::Path, sync::LazyLock};

use serde_json::{Value, json};
use trainyard_structural::{Options, Schema};

use crate::{cases, generator::Generator, reference::Reference};

static REFERENCE: LazyLock<Option<Reference>> = LazyLock::new(|| Reference::start("structural"));

const FILES: [&str; 5] = [
    "values.json",
    "rules.json",
    "defaults.json",
    "metadata.json",
    "refused.json",
];

/// Schemas, each with its JSON.
static SCHEMAS: LazyLock<Vec<(Schema, Value)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/structural/tests/cases");
    let mut all = Vec::new();
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let parts: Vec<Value> = serde_json::from_str(&text).unwrap();
        for part in parts {
            if let Ok(schema) = Schema::compile(&part["schema"]) {
                all.push((schema, part["schema"].clone()));
            }
        }
    }
    assert!(all.len() > 5, "{} schemas", all.len());
    all
});

/// Checks objects of a schema.
pub fn check(bytes: &[u8]) -> bool {
    let mut generator = Generator::new(bytes);
    let (schema, json) = &SCHEMAS[usize::from(generator.byte()) % SCHEMAS.len()];
    let is_update = generator.byte() & 1 == 1;
    let mut new = object(&mut generator, json);
    let mut is_ratcheted = false;
    let old = is_update.then(|| {
        let mut old = object(&mut generator, json);
        let outcome = schema.admit(&mut old, None, &Options::default());
        // A name cannot change, and nothing else of metadata depends on the old object.
        if let (Some(new), Some(metadata)) = (new.as_object_mut(), old.get("metadata")) {
            new.insert("metadata".to_owned(), metadata.clone());
        }
        // A server accepts its violations in the new object, too.
        is_ratcheted = !outcome.errors.is_empty();
        old
    });
    if let Some(reference) = &*REFERENCE
        && new.is_object()
        && !is_ratcheted
    {
        compare(reference, schema, json, &new, old.as_ref());
    }
    let mut stored = new;
    let first = schema.admit(&mut stored, old.as_ref(), &Options::default());
    for violation in &first.errors {
        assert!(!violation.to_string().is_empty());
    }
    let mut again = stored.clone();
    let second = schema.admit(&mut again, old.as_ref(), &Options::default());
    assert_eq!(second.unknown, [], "{stored}");
    assert_eq!(second.errors, first.errors, "{stored}");
    assert_eq!(again.to_string(), stored.to_string());
    first.errors.is_empty()
}

/// Compares with what an API server makes of the object, if it accepts the schema.
fn compare(reference: &Reference, schema: &Schema, json: &Value, new: &Value, old: Option<&Value>) {
    let mut case = json!({"name": "fuzz", "schema": json, "value": new});
    if let Some(old) = old {
        case["old"] = old.clone();
    }
    let answer = reference.ask(&case);
    if answer.is_null() {
        return;
    }
    case["answer"] = answer;
    let difference = cases::difference(schema, &case);
    assert_eq!(difference, None, "{case}");
}

fn object(generator: &mut Generator<'_>, schema: &Value) -> Value {
    let mut object = generator.value(schema);
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), json!("test.trainyard.dev/v1"));
        object.insert("kind".to_owned(), json!("Thing"));
        let metadata = match generator.byte() {
            0xf0..=0xff => generator.anything(3),
            _ => json!({"name": "a"}),
        };
        object.insert("metadata".to_owned(), metadata);
    }
    object
}

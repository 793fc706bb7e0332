//! Every difference between our CRDs and the reference's is listed with its reason, and every listed difference exists.
//!
//! The reference is read from `tests/reference/crds.json`, which `examples/digest_reference.rs` writes from its published module.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use trainyard_schema::documents::Kind;

const REFERENCE: &str = include_str!("../../../tests/reference/crds.json");
const LISTED: &str = include_str!("../../../tests/reference/divergences.md");

/// The differences at and below a node, as `path keyword`. If only one side has a part, only its top is listed.
fn compare(reference: &Value, ours: &Value, path: &str, found: &mut BTreeSet<String>) {
    let empty = Map::new();
    let (reference, ours) = (
        reference.as_object().unwrap_or(&empty),
        ours.as_object().unwrap_or(&empty),
    );
    let keywords: BTreeSet<&String> = reference.keys().chain(ours.keys()).collect();
    for keyword in keywords {
        if keyword == "description" {
            continue;
        }
        let (there, here) = (reference.get(keyword), ours.get(keyword));
        match (keyword.as_str(), there, here) {
            ("properties", _, _) => properties(there, here, path, found),
            ("items", Some(there), Some(here)) => compare(there, here, &format!("{path}[]"), found),
            ("additionalProperties", Some(there), Some(here)) => {
                compare(there, here, &format!("{path}{{}}"), found);
            }
            _ if comparable(keyword, there) == comparable(keyword, here) => {}
            _ => {
                found.insert(format!("{path} {keyword}"));
            }
        }
    }
}

fn properties(
    there: Option<&Value>,
    here: Option<&Value>,
    path: &str,
    found: &mut BTreeSet<String>,
) {
    let names = |side: Option<&Value>| -> BTreeSet<String> {
        let object = side.and_then(Value::as_object);
        object
            .map(|it| it.keys().cloned().collect())
            .unwrap_or_default()
    };
    for name in &names(there) | &names(here) {
        let path = format!("{path}.{name}");
        let (there, here) = (
            there.and_then(|side| side.get(&name)),
            here.and_then(|side| side.get(&name)),
        );
        match (there, here) {
            (Some(there), Some(here)) => compare(there, here, &path, found),
            (None, _) => drop(found.insert(format!("{path} added"))),
            (_, None) => drop(found.insert(format!("{path} missing"))),
        }
    }
}

/// The value of a keyword, independent of order and wording.
fn comparable(keyword: &str, value: Option<&Value>) -> Option<Vec<String>> {
    let texts = |value: &Value| match (keyword, value) {
        ("x-kubernetes-validations", Value::Array(rules)) => {
            rules.iter().map(|rule| rule["rule"].to_string()).collect()
        }
        ("required" | "enum", Value::Array(items)) => items.iter().map(Value::to_string).collect(),
        (_, value) => vec![value.to_string()],
    };
    let mut texts: Vec<String> = texts(value?);
    texts.sort();
    Some(texts)
}

/// The parts around the schema: names, scope and subresources.
fn header(spec: &Value) -> Value {
    let mut header = spec.clone();
    let version = header["versions"][0].as_object_mut().unwrap();
    version.remove("schema");
    version.remove("additionalPrinterColumns");
    header
}

/// The columns that `kubectl get` prints, by name.
fn columns(spec: &Value) -> BTreeMap<&str, &Value> {
    let columns = spec["versions"][0]["additionalPrinterColumns"].as_array();
    let columns = columns.into_iter().flatten();
    columns
        .map(|column| (column["name"].as_str().unwrap(), column))
        .collect()
}

fn differences() -> BTreeSet<String> {
    let reference: Value = serde_json::from_str(REFERENCE).unwrap();
    let mut found = BTreeSet::new();
    for kind in Kind::ALL {
        let (there, crd) = (&reference[kind.name()], kind.crd().unwrap());
        let here = &crd["spec"];
        let name = kind.name();
        assert_eq!(header(there), header(here), "{name}");
        for (column, expected) in columns(there) {
            let ours = columns(here)[column];
            assert_eq!(ours["type"], expected["type"], "{name}: {column}");
            if ours != expected {
                found.insert(format!("{name} column {column}"));
            }
        }
        let added = columns(here).into_keys();
        let added = added.filter(|column| !columns(there).contains_key(column));
        found.extend(added.map(|column| format!("{name} column {column} added")));
        let schema = |spec: &Value| spec["versions"][0]["schema"]["openAPIV3Schema"].clone();
        assert!(schema(there).is_object());
        compare(&schema(there), &schema(here), kind.name(), &mut found);
    }
    found
}

/// The rows of the section: kinds, path and keyword in backquotes.
fn listed() -> BTreeSet<String> {
    let section = LISTED.split("\n## CRDs\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut listed = BTreeSet::new();
    for row in section.lines().filter(|line| line.contains('`')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [kinds, paths, reason, kueue] = cells.as_slice() else {
            continue;
        };
        assert!(!reason.is_empty() && !kueue.is_empty(), "{row}");
        let kinds: &[&str] = match *kinds {
            "both runtimes" => &["TrainingRuntime", "ClusterTrainingRuntime"],
            kind => &[kind],
        };
        for place in paths.split('`').skip(1).step_by(2) {
            for kind in kinds {
                assert!(
                    listed.insert(format!("{kind}{place}")),
                    "{kind}{place} is listed twice"
                );
            }
        }
    }
    listed
}

#[test]
fn listed_differences_are_exactly_the_actual_ones() {
    let (found, listed) = (differences(), listed());
    let unlisted: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "not in tests/reference/divergences.md: {unlisted:#?}\nlisted there, but no longer a difference: {gone:#?}"
    );
    assert!(found.len() > 30);
}

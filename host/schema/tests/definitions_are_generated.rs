//! `documents/union-members.rs` is generated from the folders of the plugins, `charts/trainyard/files/crds` and `documents/compact.json` are
//! generated from the documents, and each CRD is small enough for a client-side apply. `UPDATE=1` writes the files again.

use std::{fs, path::Path};

use serde_json::{Map, Value};
use trainyard_api::yaml;
use trainyard_plugin_folders::{root, tables};
use trainyard_schema::documents::{Kind, compact};

/// The maximum size of all annotations of an object. `kubectl apply` stores the whole object in one of them.
const MOST_ANNOTATION_BYTES: usize = 256 << 10;

/// Compares a file with its expected content.
fn check(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "{} is outdated; write it again with UPDATE=1",
        path.display()
    );
}

#[test]
fn members_of_unions_are_generated_from_the_plugins() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("documents/union-members.rs");
    check(&path, &tables::union_members(&root()).unwrap());
}

#[test]
fn each_crd_is_generated_from_its_document() {
    for kind in Kind::ALL {
        let crd = kind.crd().unwrap_or_else(|error| panic!("{error}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../charts/trainyard/files/crds")
            .join(format!("{}.yaml", kind.plural()));
        check(&path, &yaml::write(&crd));
    }
}

#[test]
fn compact_schemas_are_generated_from_the_documents() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("documents/compact.json");
    check(&path, &(compact().unwrap().to_string() + "\n"));
}

/// A schema with its references expanded.
fn filled(schema: &Value, definitions: &Value) -> Value {
    match schema {
        Value::Object(members) => match members.get("$ref") {
            Some(name) if members.len() == 1 => {
                filled(&definitions[name.as_str().unwrap()], definitions)
            }
            _ => {
                let members = members.iter();
                let filled =
                    members.map(|(key, member)| (key.clone(), filled(member, definitions)));
                Value::Object(filled.collect::<Map<_, _>>())
            }
        },
        Value::Array(items) => items.iter().map(|item| filled(item, definitions)).collect(),
        other => other.clone(),
    }
}

#[test]
fn compact_schemas_are_equivalent_to_the_crds() {
    let compact = compact().unwrap();
    for (kind, document) in [
        (Kind::TrainJob, "train-job"),
        (Kind::TrainingRuntime, "runtime"),
        (Kind::ClusterTrainingRuntime, "runtime"),
    ] {
        let schema = filled(&compact["documents"][document], &compact["definitions"]);
        assert!(schema == kind.schema().unwrap(), "{document}");
    }
}

/// A lazily compiled rule counts as a transition rule by its text.
#[test]
fn transition_rules_use_the_old_value() {
    fn rules(schema: &Value, out: &mut Vec<String>) {
        match schema {
            Value::Object(members) => {
                out.extend(
                    members
                        .get("rule")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                );
                members.values().for_each(|member| rules(member, out));
            }
            Value::Array(items) => items.iter().for_each(|item| rules(item, out)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    Kind::ALL
        .iter()
        .for_each(|kind| rules(&kind.schema().unwrap(), &mut all));
    all.retain(|rule| rule.contains("oldSelf"));
    assert!(all.len() > 20, "{}", all.len());
    for rule in all {
        let code = rule.split('\'').step_by(2).collect::<String>();
        let code = code.split('"').step_by(2).collect::<String>();
        assert!(code.contains("oldSelf"), "{rule}");
    }
}

#[test]
fn each_crd_fits_a_client_side_apply() {
    for kind in Kind::ALL {
        let bytes = kind.crd().unwrap().to_string().len();
        assert!(
            bytes < MOST_ANNOTATION_BYTES * 3 / 4,
            "{}: {bytes}",
            kind.name()
        );
    }
}

//! Kustomizations, which list files and changes to the objects in them. They are not objects of a cluster.

use std::path::Path;

use serde_json::{Map, Value};

/// The API group of Kustomizations and Components.
const GROUP: &str = "kustomize.config.k8s.io/";

/// The names of files in which kustomize looks for a Kustomization.
const FILES: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// Returns whether a document is a Kustomization. One without `apiVersion` and `kind`, which kustomize allows, is recognized by the
/// name of its file.
#[must_use]
pub fn is_kustomization(file: &str, document: &Value) -> bool {
    match document.get("apiVersion") {
        Some(version) => version
            .as_str()
            .is_some_and(|version| version.starts_with(GROUP)),
        None => document.get("kind").is_none() && document.is_object() && is_name_of_one(file),
    }
}

fn is_name_of_one(file: &str) -> bool {
    let name = Path::new(file).file_name();
    name.is_some_and(|name| FILES.iter().any(|known| name == *known))
}

/// Returns the fields of a Kustomization that change objects, or add objects that are not in the files of its folder.
#[must_use]
pub fn fields_beyond_the_folder(document: &Value) -> Vec<&str> {
    let has_effect = |(field, value): &(&String, &Value)| match field.as_str() {
        "apiVersion" | "kind" | "metadata" => false,
        "resources" => !names_files_alone(value),
        _ => true,
    };
    let fields = document.as_object().into_iter().flat_map(Map::iter);
    let fields = fields.filter(has_effect);
    fields.map(|(field, _)| field.as_str()).collect()
}

/// Whether each item is the name of a file in the same folder.
fn names_files_alone(resources: &Value) -> bool {
    let is_file = |name: &str| {
        let endings = [".yaml", ".yml", ".json"];
        !name.contains('/') && endings.iter().any(|ending| name.ends_with(ending))
    };
    let mut items = resources.as_array().into_iter().flatten();
    items.all(|item| item.as_str().is_some_and(is_file))
}

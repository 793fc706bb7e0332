//! The chart, its files, and what it renders to.
#![allow(clippy::indexing_slicing)]

use std::{collections::BTreeMap, fs};

use serde_json::Value;
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use super::{command, root, stderr};

pub fn text(file: &str) -> String {
    fs::read_to_string(root().join("charts/trainyard").join(file)).unwrap()
}

pub fn values() -> Value {
    yaml::read(&text("values.yaml")).remove(0).unwrap().value
}

pub fn schema() -> Value {
    serde_json::from_str(&text("values.schema.json")).unwrap()
}

/// Returns the values that are refused unless they are empty, with what to do instead.
pub fn refused() -> BTreeMap<String, String> {
    let list = yaml::read(&text("files/refused-values.yaml"))
        .remove(0)
        .unwrap()
        .value;
    serde_json::from_value(list).unwrap()
}

/// The image, which has no default.
pub const IMAGE: [&str; 2] = ["--set-json", "image.repository=\"example.com/trainyard\""];

/// Returns what the chart renders to with these values, or helm's error.
pub fn template(helm: Helm, values: &[&str]) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let arguments: Vec<_> = values
        .iter()
        .flat_map(|value| ["--set-json", value])
        .collect();
    let rendered = helm
        .template(
            &[
                &IMAGE[..],
                &["--set-json", "crds.enabled=false"],
                &arguments,
            ]
            .concat(),
        )
        .map_err(|error| error.to_string())?;
    let parsed = rendered.into_iter().map(|(template, documents)| {
        let documents = documents.iter();
        let values = documents.map(|text| yaml::read(text).remove(0).unwrap().value);
        (template, values.collect())
    });
    Ok(parsed.collect())
}

/// Returns helm's error with these values.
pub fn refusal(helm: Helm, values: &[&str]) -> String {
    let refused = template(helm, values).err();
    refused.unwrap_or_else(|| panic!("{helm:?} accepts {values:?}"))
}

pub fn config_of(rendered: &BTreeMap<String, Vec<Value>>) -> &str {
    rendered["config.yaml"][0]["data"]["controller.yaml"]
        .as_str()
        .unwrap()
}

/// Checks that the controller accepts a configuration: it then misses only its cluster.
pub fn assert_starts(config: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("controller.yaml");
    fs::write(&file, config).unwrap();
    let output = command(&["controller", "--kubeconfig", "/none.yaml", "--config"])
        .arg(&file)
        .env("TRAINYARD_CACHE_DIR", folder.path())
        .output()
        .unwrap();
    let log = stderr(&output);
    assert!(
        log.contains("/none.yaml") && !log.contains("controller.yaml:"),
        "{config}\n{log}"
    );
}

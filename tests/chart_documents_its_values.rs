//! The chart documents each of its values, and its schema has each of them, each key of the controller's configuration and each runtime.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_plugin_folders::runtimes;

use crate::common::{
    chart::{refused, schema, text, values},
    root,
};

/// Adds the paths of all properties of a schema.
fn properties(schema: &Value, path: &str, all: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        properties(property, &format!("{path}."), all);
        all.insert(path);
    }
}

/// Adds the paths of all values, except of those within free-form values.
fn paths(values: &Value, path: &str, known: &BTreeSet<String>, all: &mut BTreeSet<String>) {
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        let is_known = known
            .iter()
            .any(|known| known.starts_with(&format!("{path}.")));
        if is_known {
            paths(value, &format!("{path}."), known, all);
        }
        all.insert(path);
    }
}

#[test]
fn schema_and_file_of_values_list_the_same() {
    let mut known = BTreeSet::new();
    properties(&schema(), "", &mut known);
    let mut listed = BTreeSet::new();
    paths(&values(), "", &known, &mut listed);
    let unknown: Vec<_> = listed.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let refused = refused();
    let is_below =
        |path: &str, parent: &str| path == parent || path.starts_with(&format!("{parent}."));
    let mut missing: Vec<_> = known.difference(&listed).collect();
    // The configuration has a page of its own.
    missing.retain(|path| {
        let is_refused = refused
            .keys()
            .any(|refused| is_below(path, refused) || is_below(refused, path));
        !is_refused
            && !is_below(path, "manager.config")
            && !["fullnameOverride", "global"].contains(&path.as_str())
    });
    missing.retain(|path| {
        !path.starts_with("runtimes.installer.resources.")
            && !path.starts_with("manager.resources.")
    });
    assert!(missing.is_empty(), "{missing:?}");
    for path in refused.keys() {
        let mut ancestors = path
            .match_indices('.')
            .map(|(end, _)| &path[..end])
            .chain([path.as_str()]);
        assert!(ancestors.any(|path| known.contains(path)), "{path}");
    }
}

#[test]
fn chart_has_the_version_of_the_program() {
    let chart = yaml::read(&text("Chart.yaml")).remove(0).unwrap().value;
    for version in ["version", "appVersion"] {
        assert_eq!(chart[version], env!("CARGO_PKG_VERSION"), "{version}");
    }
}

#[test]
fn every_value_has_a_comment_above_its_block() {
    let text = text("values.yaml");
    let lines: Vec<_> = text.lines().collect();
    let is_top = |line: &str| line.ends_with(':') || line.contains(": ");
    let tops: Vec<_> = (0..lines.len())
        .filter(|at| !lines[*at].starts_with([' ', '#']) && is_top(lines[*at]))
        .collect();
    assert!(tops.len() > 8, "{tops:?}");
    for at in tops {
        let is_commented = at > 0 && lines[at - 1].starts_with('#');
        // These three share a comment.
        let shares = ["prometheusRule:", "grafanaDashboard:"].contains(&lines[at]);
        assert!(is_commented || shares, "{}", lines[at]);
    }
}

/// The keys of docs/configuration.md, and those that only the Kubeflow Trainer's chart has.
#[test]
fn schema_has_every_key_of_the_configuration() {
    let manual = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, table) = manual
        .split_once("| key | default | meaning |\n|---|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let documented: BTreeSet<_> = rows
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    let mut known = BTreeSet::new();
    properties(
        &schema()["properties"]["manager"]["properties"]["config"],
        "",
        &mut known,
    );
    let leaves: BTreeSet<_> = known
        .iter()
        .filter(|path| {
            !known
                .iter()
                .any(|other| other.starts_with(&format!("{path}.")))
        })
        .cloned()
        .collect();
    let of_the_reference = [
        "controller.groupKindConcurrency.clusterTrainingRuntime",
        "controller.groupKindConcurrency.trainJob",
        "controller.groupKindConcurrency.trainingRuntime",
        "health.livenessEndpointName",
        "health.readinessEndpointName",
        "metrics.secureServing",
    ];
    assert_eq!(
        leaves,
        &documented | &of_the_reference.map(str::to_owned).into()
    );
}

#[test]
fn schema_lists_the_shipped_runtimes() {
    let schema = schema();
    let install = &schema["properties"]["runtimes"]["properties"]["install"]["oneOf"];
    assert_eq!(install[0]["const"], "all");
    let names: Vec<_> = runtimes(&root()).unwrap().into_keys().collect();
    assert_eq!(install[1]["items"]["enum"], json!(names));
}

//! Prometheus' own tool accepts the alerts and the queries of the dashboard, and each alert fires after its time, and not before it or on a
//! healthy cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use trainyard_cluster::promtool;

use crate::common::{root, stderr, stdout};

const ALERTS: &str = "charts/trainyard/files/alerts.yaml";

/// Runs promtool, and returns its output.
fn run(arguments: &[&str], file: &Path) -> String {
    let mut command = Command::new(promtool().unwrap());
    let output = command.args(arguments).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn alerts_are_valid_and_fire() {
    let checked = run(&["check", "rules", "--lint-fatal"], &root().join(ALERTS));
    assert!(checked.contains("SUCCESS: 15 rules found"), "{checked}");
    run(
        &["test", "rules"],
        &root().join("tests/cluster/promtool/alerts.yaml"),
    );
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn queries_of_the_dashboard_are_valid() {
    let text = fs::read_to_string(root().join("charts/trainyard/files/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    // What Grafana sets.
    let query = |target: &Value| {
        let query = target["expr"].as_str().unwrap();
        query
            .replace("$__rate_interval", "5m")
            .replace("$job", ".*")
    };
    let rules = targets.map(query).enumerate();
    let rules: Vec<_> = rules
        .map(|(at, query)| json!({"record": format!("query:{at}"), "expr": query}))
        .collect();
    assert!(rules.len() > 20);
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    fs::write(&file, groups.to_string()).unwrap();
    run(&["check", "rules"], &file);
}

/// A test of each alert is in the file of tests.
#[test]
fn every_alert_is_tested() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let alerts = read(ALERTS);
    let tests = read("tests/cluster/promtool/alerts.yaml");
    let names = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        let fires = format!("    alertname: {name}\n    exp_alerts:\n");
        assert!(tests.contains(&fires), "{name}");
    }
}

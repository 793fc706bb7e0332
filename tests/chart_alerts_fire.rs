//! Prometheus' own tool accepts the alerts, and each alert fires after its time, and not before it or on a healthy cluster. Prometheus keeps the
//! labels that they show.

use std::{fs, path::Path, process::Command};

use trainyard_cluster::{Helm, promtool};

use crate::common::{chart::template, root, stderr, stdout};

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
    let alerts = root().join(ALERTS);
    let rules = fs::read_to_string(&alerts).unwrap();
    let rules = rules.matches("- alert:").count();
    let checked = run(&["check", "rules", "--lint-fatal"], &alerts);
    let found = format!("SUCCESS: {rules} rules found");
    assert!(checked.contains(&found), "{checked}");
    run(
        &["test", "rules"],
        &root().join("tests/cluster/promtool/alerts.yaml"),
    );
}

/// Otherwise, the label `namespace` of a metric would be the controller's in the dashboard and in alerts.
#[test]
#[ignore = "needs Go: `make test-chart`"]
fn labels_of_metrics_are_kept() {
    for helm in Helm::ALL {
        let rendered = template(helm, &["serviceMonitor.enabled=true"]).unwrap();
        let monitor = &rendered["monitoring.yaml"][0];
        assert_eq!(monitor["kind"], "ServiceMonitor");
        assert_eq!(monitor["spec"]["endpoints"][0]["honorLabels"], true);
    }
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

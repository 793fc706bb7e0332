//! Metrics carry the names and labels that dashboards of the reference read, and tell what each plugin did.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use trainyard_controller::{
    metrics::{Metrics, Outcome, PluginCall},
    queue::{Backoff, Key, Queue},
};
use trainyard_model::{
    plugin::PluginId,
    policy::{Busy, Ended, Phase},
};

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "no {line} in:\n{text}");
}

#[test]
fn dashboards_of_the_reference_find_their_series() {
    let queue = Queue::new(Backoff::default());
    let metrics = Metrics::new(&queue);
    let before = metrics.text().unwrap();
    for result in ["success", "requeue_after", "error"] {
        has(
            &before,
            &format!(
                r#"controller_runtime_reconcile_total{{controller="trainjob_controller",result="{result}"}} 0"#
            ),
        );
    }
    queue.add(Key::new("a", "one"));
    queue.add(Key::new("a", "two"));
    let took = Duration::from_millis(3);
    metrics.reconciled(Outcome::Success, took);
    metrics.reconciled(Outcome::Success, took);
    metrics.reconciled(Outcome::RequeueAfter, took);
    metrics.reconciled(Outcome::Error("PluginFailed"), took);
    metrics.set_leader(true);
    let text = metrics.text().unwrap();
    for line in [
        r#"workqueue_depth{name="trainjob_controller",controller="trainjob_controller"} 2"#,
        r#"controller_runtime_reconcile_total{controller="trainjob_controller",result="success"} 2"#,
        r#"controller_runtime_reconcile_total{controller="trainjob_controller",result="requeue_after"} 1"#,
        r#"controller_runtime_reconcile_total{controller="trainjob_controller",result="error"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="trainjob_controller"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="trainjob_controller"} 4"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="0.005",controller="trainjob_controller"} 4"#,
        r#"trainyard_reconcile_failures_total{reason="PluginFailed"} 1"#,
        "trainyard_leader 1",
        "# EOF",
    ] {
        has(&text, line);
    }
    metrics.set_leader(false);
    has(&metrics.text().unwrap(), "trainyard_leader 0");
}

#[test]
fn each_plugin_and_phase_is_counted_apart() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let torch = PluginId {
        name: "torch".into(),
        version: "1.0.0".into(),
        digest: "sha256:12".into(),
    };
    let busy = Ended::Busy(Busy::Pool);
    for (phase, error) in [
        (Phase::Transform, None),
        (Phase::Transform, Some(&busy)),
        (Phase::Check, None),
    ] {
        metrics.plugin_called(&PluginCall {
            plugin: &torch,
            phase,
            took: Duration::from_micros(20),
            fuel: Some(1_000),
            writes: 7,
            error,
        });
    }
    metrics.plugin_loaded(&torch);
    metrics.plugin_refused("broken.wasm");
    let text = metrics.text().unwrap();
    for line in [
        r#"trainyard_plugin_call_duration_seconds_count{plugin="torch",phase="transform"} 2"#,
        r#"trainyard_plugin_call_duration_seconds_count{plugin="torch",phase="check"} 1"#,
        r#"trainyard_plugin_fuel_total{plugin="torch",phase="transform"} 2000"#,
        r#"trainyard_plugin_writes_total{plugin="torch",phase="check"} 7"#,
        r#"trainyard_plugin_errors_total{plugin="torch",phase="transform",kind="busy"} 1"#,
        r#"trainyard_plugin_loaded{plugin="torch",version="1.0.0",digest="sha256:12"} 1"#,
        r#"trainyard_plugin_refused{file="broken.wasm"} 1"#,
    ] {
        has(&text, line);
    }
}

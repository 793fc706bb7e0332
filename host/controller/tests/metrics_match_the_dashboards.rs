//! Metrics have the names and labels that the reference's dashboards read, and show what each plugin does.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use trainyard_controller::{
    metrics::{Metrics, Outcome, PluginCall, TrainJobCounts, TrainJobLabels},
    queue::{Backoff, NamespacedName, Queue},
};
use trainyard_model::{
    plugin::{Busy, CallFailure, Phase},
    plugin_info::PluginId,
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
    queue.add(NamespacedName::new("a", "one"));
    queue.add(NamespacedName::new("a", "two"));
    let took = Duration::from_millis(3);
    metrics.reconciled(Outcome::Success, took);
    metrics.reconciled(Outcome::Success, took);
    metrics.reconciled(Outcome::RequeueAfter, took);
    metrics.reconciled(Outcome::Error("render"), took);
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
        r#"trainyard_reconcile_failures_total{kind="render"} 1"#,
        "trainyard_leader 1",
        "# EOF",
    ] {
        has(&text, line);
    }
    metrics.set_leader(false);
    has(&metrics.text().unwrap(), "trainyard_leader 0");
}

#[tokio::test]
async fn reconciled_keys_count_as_work() {
    let queue = Queue::new(Backoff::default());
    let metrics = Metrics::new(&queue);
    queue.add(NamespacedName::new("a", "one"));
    let running = queue.next().await.unwrap();
    let active = |count| {
        format!(r#"controller_runtime_active_workers{{controller="trainjob_controller"}} {count}"#)
    };
    let text = metrics.text().unwrap();
    has(&text, &active(1));
    has(
        &text,
        r#"workqueue_depth{name="trainjob_controller",controller="trainjob_controller"} 0"#,
    );
    running.succeed();
    has(&metrics.text().unwrap(), &active(0));
}

fn torch() -> PluginId {
    PluginId {
        name: "torch".into(),
        version: "1.0.0".into(),
        digest: "sha256:12".into(),
    }
}

fn call(metrics: &Metrics, phase: Phase, error: Option<&CallFailure>) {
    metrics.plugin_called(&PluginCall {
        plugin: &torch(),
        phase,
        took: Duration::from_micros(20),
        fuel: Some(1_000),
        writes: 7,
        error,
    });
}

/// The series of the panels of kubeflow/trainer#3653, `up` aside, which Prometheus writes itself.
#[tokio::test]
async fn every_panel_of_the_reference_dashboard_has_its_series() {
    let queue = Queue::new(Backoff::default());
    let metrics = Metrics::new(&queue);
    let tasks: Vec<_> = (0..5)
        .map(|_| tokio::spawn(std::future::pending::<()>()))
        .collect();
    queue.add(NamespacedName::new("a", "one"));
    for retries in 0..3 {
        let text = metrics.text().unwrap();
        has(
            &text,
            &format!(
                r#"workqueue_retries_total{{name="trainjob_controller",controller="trainjob_controller"}} {retries}"#
            ),
        );
        let running = queue.next();
        tokio::time::timeout(Duration::from_secs(60), running)
            .await
            .unwrap()
            .unwrap()
            .fail();
        queue.add(NamespacedName::new("a", "one"));
    }
    metrics.reconciled(Outcome::Success, Duration::ZERO);
    let text = metrics.text().unwrap();
    has(&text, "go_goroutines 5");
    for series in [
        "controller_runtime_reconcile_total{",
        "controller_runtime_reconcile_time_seconds_bucket{",
        "workqueue_depth{",
        #[cfg(target_os = "linux")]
        "process_resident_memory_bytes ",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(series)),
            "{series}"
        );
    }
    drop(tasks);
}

/// A quote, a backslash or a line break in a value would end the label and allow forged series.
#[test]
fn label_values_are_escaped() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let hostile = "a\"} 1\ntrainyard_leader 1\n# HELP \\ \u{202e}\u{7}";
    let id = PluginId {
        name: hostile.into(),
        version: hostile.into(),
        digest: hostile.into(),
    };
    metrics.set_plugins("sha256:1", [&id]);
    metrics.plugin_refused(hostile);
    metrics.plugin_refused(&"x".repeat(10_000));
    metrics.plugin_called(&PluginCall {
        plugin: &id,
        phase: Phase::Check,
        took: Duration::ZERO,
        fuel: Some(1),
        writes: 1,
        error: Some(&CallFailure::Busy(Busy::Pool)),
    });
    let text = metrics.text().unwrap();
    has(&text, "trainyard_leader 0");
    assert_eq!(text.matches("\ntrainyard_leader ").count(), 1, "{text}");
    for line in text
        .lines()
        .filter(|line| line.contains("trainyard_plugin"))
    {
        assert!(
            line.len() < 600 && !line.contains(char::is_control),
            "{line}"
        );
        if let Some((_, labels)) = line.split_once('{') {
            // Every quote within a value has a backslash before it.
            let (labels, _) = labels.rsplit_once('}').unwrap();
            let quotes = labels
                .replace("\\\\", "")
                .replace("\\\"", "")
                .matches('"')
                .count();
            assert_eq!(quotes, 2 * labels.matches("=\"").count(), "{line}");
        }
    }
    assert!(
        text.contains(r#"file="a\"} 1"#) && text.contains(r"# HELP \\ "),
        "{text}"
    );
}

#[test]
fn plugins_and_phases_are_counted_separately() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let busy = CallFailure::Busy(Busy::Pool);
    for (phase, error) in [
        (Phase::Transform, None),
        (Phase::Transform, Some(&busy)),
        (Phase::Check, None),
    ] {
        call(&metrics, phase, error);
    }
    let replaced = PluginId {
        version: "0.9.0".into(),
        ..torch()
    };
    metrics.set_plugins("sha256:1", [&replaced]);
    metrics.set_plugins("sha256:2", [&torch()]);
    metrics.plugin_refused("broken.wasm");
    let text = metrics.text().unwrap();
    assert!(!text.contains("sha256:1\""), "one plan at a time: {text}");
    assert!(!text.contains("0.9.0"), "replaced: {text}");
    for line in [
        r#"trainyard_plan_info{digest="sha256:2"} 1"#,
        r#"trainyard_plugin_call_duration_seconds_count{plugin="torch",phase="transform",digest="sha256:12"} 2"#,
        r#"trainyard_plugin_call_duration_seconds_count{plugin="torch",phase="check",digest="sha256:12"} 1"#,
        r#"trainyard_plugin_fuel_total{plugin="torch",phase="transform",digest="sha256:12"} 2000"#,
        r#"trainyard_plugin_writes_total{plugin="torch",phase="check",digest="sha256:12"} 7"#,
        r#"trainyard_plugin_errors_total{plugin="torch",phase="transform",kind="busy",digest="sha256:12"} 1"#,
        r#"trainyard_plugin_loaded{plugin="torch",version="1.0.0",digest="sha256:12"} 1"#,
        r#"trainyard_plugin_refused{file="broken.wasm"} 1"#,
    ] {
        has(&text, line);
    }
}

#[cfg(target_os = "linux")]
fn value(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect(name).parse().expect(name)
}

/// Each metric has the unit of its name, and changes with what the test does.
#[cfg(target_os = "linux")]
#[test]
fn process_metrics_have_standard_names() {
    const SIZE: f64 = 64.0 * 1024.0 * 1024.0;
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let before = metrics.text().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(50) {
        std::hint::black_box((0_u64..1_000_000).sum::<u64>());
    }
    let after = metrics.text().unwrap();
    for (name, kind) in [
        ("process_cpu_seconds", "counter"),
        ("process_resident_memory_bytes", "gauge"),
        ("process_virtual_memory_bytes", "gauge"),
        ("process_open_fds", "gauge"),
        ("process_max_fds", "gauge"),
        ("process_start_time_seconds", "gauge"),
    ] {
        has(&after, &format!("# TYPE {name} {kind}"));
    }
    let cpu = "process_cpu_seconds_total";
    let cpu = value(&after, cpu) - value(&before, cpu);
    assert!((0.01..600.0).contains(&cpu), "{cpu}");
    // Other tests of this process take memory and give it back, some of them a gigabyte, but not at every moment.
    for memory in [
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
    ] {
        let rise = |_| {
            let before = value(&metrics.text().unwrap(), memory);
            let taken = std::hint::black_box(vec![1_u8; SIZE as usize]);
            let after = value(&metrics.text().unwrap(), memory);
            drop(taken);
            after - before
        };
        let mut rises = (0..50).map(rise);
        assert!(
            rises.any(|rise| (SIZE * 0.9..SIZE * 1.5).contains(&rise)),
            "{memory}"
        );
    }
    // Files are opened and closed by the hundred, but not at every moment.
    let opened = || {
        let before = value(&metrics.text().unwrap(), "process_open_fds");
        let open = |_| std::fs::File::open("/proc/self/exe").unwrap();
        let files: Vec<_> = (0..100).map(open).collect();
        let after = value(&metrics.text().unwrap(), "process_open_fds");
        drop(files);
        after - before
    };
    assert!((0..1_000).any(|_| (90.0..110.0).contains(&opened())));
    assert!(value(&after, "process_max_fds") >= value(&after, "process_open_fds"));
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let age = now - value(&after, "process_start_time_seconds");
    assert!((-60.0..3600.0).contains(&age), "{age}");
}

#[test]
fn train_jobs_are_counted_by_the_process_that_reconciles_them() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    assert!(!metrics.text().unwrap().contains("trainyard_train_jobs"));
    let leads = Arc::new(AtomicBool::new(false));
    let labels = TrainJobLabels {
        state: "waiting",
        reason: "RuntimeNotFound",
    };
    let counts = TrainJobCounts::from([(labels, 3)]);
    let (reads, known) = (leads.clone(), counts);
    metrics.count_train_jobs_with(move || reads.load(Ordering::SeqCst).then(|| known.clone()));
    assert!(!metrics.text().unwrap().contains("trainyard_train_jobs"));
    leads.store(true, Ordering::SeqCst);
    let text = metrics.text().unwrap();
    has(&text, "# TYPE trainyard_train_jobs gauge");
    has(
        &text,
        r#"trainyard_train_jobs{state="waiting",reason="RuntimeNotFound"} 3"#,
    );
    for state in [
        "complete",
        "failed",
        "refused",
        "running",
        "suspended",
        "waiting",
    ] {
        has(
            &text,
            &format!(r#"trainyard_train_jobs{{state="{state}",reason=""}} 0"#),
        );
    }
}

/// The names in the first column of the tables of a text.
fn rows(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split(['`', '{']).next())
        .collect()
}

/// Compares the pairs of a kind and a reason in `ReconcileError::labels` with the page.
#[test]
fn every_kind_of_error_is_documented() {
    let code = include_str!("../src/reconcile/error/summary.rs");
    let (_, labels) = code.split_once("fn labels(&self)").unwrap();
    let (labels, _) = labels.split_once("\n    }\n").unwrap();
    // The census of TrainJobs uses this reason too, so it has a name.
    let labels = labels.replace("NOT_CREATED", "\"NotCreated\"");
    let labels = labels.replace("WAITS", "\"ObjectWaits\"");
    let labels: Vec<_> = labels.split('"').skip(1).step_by(2).collect();
    let names: BTreeSet<_> = labels.iter().step_by(2).copied().collect();
    assert!(names.len() > 10 && names.contains("train_job"), "{names:?}");
    let page = include_str!("../../../docs/metrics.md");
    let (_, kinds) = page.split_once("## Kinds of errors").unwrap();
    assert_eq!(rows(kinds), names);
    for pair in labels.chunks(2) {
        let row = format!("| `{}` | `{}` |", pair[0], pair[1]);
        assert!(kinds.contains(&row), "no {row}");
    }
}

/// Compares the metrics with the tables in docs/metrics.md.
#[test]
fn every_metric_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (page, _) = page.split_once("## Kinds of errors").unwrap();
    let listed: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
        .map(str::to_owned)
        .collect();
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    metrics.reconciled(Outcome::Error("render"), Duration::ZERO);
    call(
        &metrics,
        Phase::Transform,
        Some(&CallFailure::Busy(Busy::Pool)),
    );
    metrics.set_plugins("sha256:1", [&torch()]);
    metrics.plugin_refused("broken.wasm");
    metrics.admitted(
        "validator.trainjob.trainer.kubeflow.org",
        "allowed",
        Duration::ZERO,
    );
    metrics.status_updated(200);
    metrics.spans_dropped("full", 1);
    metrics.certificate_changed("create");
    metrics.set_unreadable("TrainJob", 1);
    metrics.watch_heard("TrainJob");
    metrics.count_train_jobs_with(|| Some(TrainJobCounts::new()));
    metrics.count_held_text_with(|| vec![("TrainJob", vec![(None, 1)])]);
    metrics.show_shadow(&Arc::default());
    metrics.set_revision_stage(Some(("Running", "Completed")));
    metrics.plugins_not_loaded(["rdma"].into_iter());
    metrics.set_inactive_policies([("rdma", "Retrying")].into_iter());
    let text = metrics.text().unwrap();
    let served: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        })
        .collect();
    // This one is there only once an API server is called.
    let later = ["trainyard_api_calls_total"];
    let missing = |name: &&String| {
        let elsewhere = !cfg!(target_os = "linux") && name.starts_with("process_");
        !elsewhere && !later.contains(&name.as_str())
    };
    assert_eq!(
        listed.iter().filter(missing).collect::<Vec<_>>(),
        served.iter().collect::<Vec<_>>()
    );
}

#[test]
fn namespaces_with_the_most_text_have_their_own_series() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    assert!(!metrics.text().unwrap().contains("trainyard_held_bytes"));
    metrics.count_held_text_with(|| {
        let namespaces = (1..=1_000).map(|number| (Some(format!("n{number}").into()), number));
        let cluster = vec![(None, 7)];
        vec![
            ("TrainJob", namespaces.collect()),
            ("ClusterTrainingRuntime", cluster),
        ]
    });
    let text = metrics.text().unwrap();
    for line in [
        r#"trainyard_held_bytes{kind="TrainJob",namespace="n1000"} 1000"#,
        r#"trainyard_held_bytes{kind="TrainJob",namespace="n901"} 901"#,
        // The sum of 1 to 900.
        r#"trainyard_held_bytes{kind="TrainJob",namespace="<other>"} 405450"#,
        r#"trainyard_held_bytes{kind="ClusterTrainingRuntime",namespace=""} 7"#,
    ] {
        has(&text, line);
    }
    let series = text.matches("trainyard_held_bytes{").count();
    assert_eq!(series, 102);
}

/// The value of the series that begins so.
fn seconds(metrics: &Metrics, series: &str) -> f64 {
    let text = metrics.text().unwrap();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(series));
    let value = values.next().expect(series).trim();
    value.parse().expect(series)
}

#[tokio::test(start_paused = true)]
async fn age_of_a_watch_is_the_time_since_something_arrived() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    assert!(!metrics.text().unwrap().contains("trainyard_watch_age"));
    metrics.watch_heard("TrainJob");
    metrics.watch_heard("JobSet");
    tokio::time::advance(Duration::from_secs(90)).await;
    metrics.watch_heard("JobSet");
    tokio::time::advance(Duration::from_secs(5)).await;
    let age = |kind| {
        seconds(
            &metrics,
            &format!(r#"trainyard_watch_age_seconds{{kind="{kind}"}}"#),
        )
    };
    assert_eq!((age("TrainJob"), age("JobSet")), (95.0, 5.0));
}

#[tokio::test(start_paused = true)]
async fn oldest_train_job_of_the_queue_is_measured() {
    let queue = Queue::new(Backoff::default()).with_workers(NonZeroUsize::MIN);
    let metrics = Metrics::new(&queue);
    let oldest = || seconds(&metrics, "trainyard_queue_oldest_seconds");
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    assert_eq!(oldest(), 0.0);
    queue.add(NamespacedName::new("a", "one"));
    pass(3).await;
    assert_eq!(oldest(), 3.0);
    let running = queue.next().await.unwrap();
    pass(10).await;
    assert_eq!(oldest(), 0.0, "a worker has taken it");
    queue.add(NamespacedName::new("a", "two"));
    queue.add_after(NamespacedName::new("a", "three"), Duration::from_secs(60));
    pass(4).await;
    // Adding it again does not make it younger.
    queue.add(NamespacedName::new("a", "two"));
    pass(1).await;
    assert_eq!(oldest(), 5.0);
    // The key is taken, but no worker is free.
    {
        let mut next = std::pin::pin!(queue.next());
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        pass(5).await;
        assert_eq!(oldest(), 10.0);
        running.succeed();
        next.await.unwrap().succeed();
    }
    assert_eq!(oldest(), 0.0, "the last one is not due yet");
    pass(60).await;
    assert_eq!(oldest(), 10.0);
}

#[test]
fn creations_of_job_sets_are_counted_by_seconds() {
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    has(
        &metrics.text().unwrap(),
        "trainyard_job_set_creation_seconds_count 0",
    );
    metrics.job_set_created(Duration::ZERO);
    metrics.job_set_created(Duration::from_secs(42));
    let text = metrics.text().unwrap();
    for line in [
        "trainyard_job_set_creation_seconds_sum 42.0",
        r#"trainyard_job_set_creation_seconds_bucket{le="1.0"} 1"#,
        r#"trainyard_job_set_creation_seconds_bucket{le="60.0"} 2"#,
    ] {
        has(&text, line);
    }
}

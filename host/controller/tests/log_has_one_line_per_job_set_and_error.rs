//! The log has one line for each JobSet that is created, and each error in full once, however often it is retried.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use tracing::Level;
use trainyard_controller::metrics::Metrics;
use trainyard_model::plugin::Plugin;

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
    log::CapturedLog,
    plugin::plugin,
};

async fn start(cluster: &Cluster, plugins: Vec<Arc<dyn Plugin>>) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| plugins).await
}

// All tasks of a test run on its thread, whose log is captured.
#[tokio::test]
async fn each_created_job_set_is_one_line_with_its_plugins() {
    let log = CapturedLog::start(Level::INFO);
    let cluster = Cluster::new();
    cluster.put(runtime("of-plugin", &["quota"]));
    let names = ["one", "two", "three"];
    for name in names {
        cluster.put(job("team", name, "of-plugin", false));
    }
    let controller = start(&cluster, vec![plugin("quota", &[], |_| Ok(()))]).await;
    cluster
        .until("each has a JobSet", |cluster| cluster.count("jobsets") == 3)
        .await;
    // Later writes of a JobSet are not creations.
    cluster.merge(
        "trainjobs",
        "team",
        "one",
        &json!({"spec": {"suspend": true}}),
    );
    let is_suspended = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "team", "one").unwrap();
        job_set["spec"]["suspend"] == true
    };
    cluster.until("one is suspended", is_suspended).await;
    controller.stop().await;
    let created = log.lines_with("JobSet created");
    assert_eq!(created.len(), names.len(), "{created:#?}");
    for name in names {
        let name = format!("namespace=\"team\" name=\"{name}\"");
        let line = created.iter().find(|line| line.contains(&name));
        assert!(line.unwrap().contains("quota 1.0.0"), "{created:#?}");
    }
}

#[tokio::test]
async fn a_retry_does_not_repeat_the_error() {
    let log = CapturedLog::start(Level::INFO);
    let cluster = Cluster::new();
    cluster.put(job("team", "job", "missing", false));
    let controller = start(&cluster, Vec::new()).await;
    let failed = || log.lines_with("reconcile failed");
    cluster
        .until("it is retried twice", |_| failed().len() >= 3)
        .await;
    controller.stop().await;
    let failed = failed();
    let error = "ClusterTrainingRuntime `missing`";
    assert!(failed[0].contains(error), "{failed:#?}");
    for (retry, line) in failed[1..].iter().enumerate() {
        assert!(!line.contains(error), "{line}");
        assert!(line.contains("reason=\"RuntimeNotFound\""), "{line}");
        assert!(line.contains(&format!("times={}", retry + 2)), "{line}");
    }
}

/// All kinds of lines about the objects of a namespace count against one share.
#[tokio::test]
async fn lines_about_a_namespace_are_limited_whatever_they_are_about() {
    const JOBS: usize = 1_000;
    let log = CapturedLog::start(Level::INFO);
    let cluster = Cluster::new();
    for number in 0..JOBS {
        cluster.put(job("team", &format!("job-{number}"), "missing", false));
    }
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    cluster.set_rule(move |_, when, call, _| match (when, call) {
        (When::Before, ("patch", "trainjobs") | ("create", "events")) => {
            count.fetch_add(1, Ordering::Relaxed);
            Act::OverQuota
        }
        _ => Act::GoOn,
    });
    let controller = start(&cluster, Vec::new()).await;
    let all = |_: &Cluster| refused.load(Ordering::Relaxed) >= JOBS * 3 / 2;
    cluster.until("all are reported", all).await;
    controller.stop().await;
    let lines = log.lines_with("team");
    // A slow machine may take a while, with one line in each second.
    assert!((200..600).contains(&lines.len()), "{}", lines.len());
}

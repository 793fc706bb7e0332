//! A JobSet that is kept by finalizers for a minute after its deletion is reported on the TrainJob, until it is gone: in its annotation, an
//! Event and the metric, with the finalizers' names.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::json;
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::{metrics::Metrics, queue::Queue};

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();

fn metrics(queue: &Queue) -> Arc<Metrics> {
    let metrics = || Arc::new(Metrics::new(queue));
    METRICS.get_or_init(metrics).clone()
}

const FINALIZERS: &str = "example.com/keep, foregroundDeletion";

/// Returns the TrainJob's annotation about its error.
fn annotation(cluster: &Cluster) -> String {
    let job = cluster.get("trainjobs", "a", "job").unwrap();
    let annotation = &job["metadata"]["annotations"][ERROR_ANNOTATION];
    annotation.as_str().unwrap_or_default().to_owned()
}

/// Whether an Event of the TrainJob names the finalizers.
fn has_event(cluster: &Cluster) -> bool {
    let events = cluster.all("events").into_iter();
    let mut events = events.filter(|event| event["involvedObject"]["kind"] == "TrainJob");
    events.any(|event| {
        event["message"].as_str().is_some_and(|message| {
            message.contains("JobSet `job` is being deleted") && message.contains(FINALIZERS)
        })
    })
}

fn is_counted() -> bool {
    let line = r#"trainyard_train_jobs{state="running",reason="ObjectDeleting"} 1"#;
    let text = METRICS.get().unwrap().text().unwrap();
    text.lines().any(|it| it == line)
}

/// Lets the controller's clock pass, in steps that are shorter than the timeout of a call.
async fn pass(time: Duration) {
    const STEP: Duration = Duration::from_secs(1);
    let mut passed = Duration::ZERO;
    while passed < time {
        tokio::time::pause();
        tokio::time::advance(STEP).await;
        tokio::time::resume();
        passed += STEP;
        // Calls to the API server are answered meanwhile.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn finalizers_that_keep_a_job_set_are_named_after_a_minute() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", false));
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    let is_made = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_made).await;
    let finalizers: Vec<_> = FINALIZERS.split(", ").collect();
    let deleted = json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers},
    });
    cluster.merge("jobsets", "a", "job", &deleted);
    cluster.until("it is noticed", |_| is_counted()).await;
    pass(Duration::from_secs(20)).await;
    assert!(annotation(&cluster).is_empty() && !has_event(&cluster));

    // The reconcile that reports it comes after a backoff of up to another minute.
    pass(Duration::from_secs(180)).await;
    let is_annotated = |cluster: &Cluster| annotation(cluster).contains(FINALIZERS);
    cluster.until("it is annotated", is_annotated).await;
    cluster.until("there is an Event", has_event).await;
    assert!(annotation(&cluster).starts_with("ObjectDeleting: "));
    cluster.until("it is counted", |_| is_counted()).await;

    cluster.delete("jobsets", "a", "job");
    let is_made_again = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap_or_default();
        job_set["metadata"]["deletionTimestamp"].is_null() && job_set.is_object()
    };
    cluster.until("it is recreated", is_made_again).await;
    // The annotation is removed at most once a minute.
    pass(Duration::from_secs(61)).await;
    let is_over = |cluster: &Cluster| annotation(cluster).is_empty() && !is_counted();
    cluster.until("nothing is wrong any more", is_over).await;
    controller.stop().await;
}

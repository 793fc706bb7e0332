//! A running TrainJob whose Jobs or pods cannot be created says why, until they are created: in its annotation, an Event and the metric.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
};

/// Starts a controller for a TrainJob that was created two minutes ago, and waits for its JobSet. Also returns the controller's metrics.
async fn start(cluster: &Cluster) -> (Controller, Arc<Metrics>) {
    cluster.put(runtime("plain", &[]));
    let created = Timestamp::now().checked_sub(2.minutes()).unwrap();
    let mut job = job("a", "job", "plain", false);
    job["metadata"]["creationTimestamp"] = created.to_string().into();
    cluster.put(job);
    let mut kept = None;
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let without_plugins = |metrics: &_| {
        kept = Some(Arc::clone(metrics));
        Vec::new()
    };
    let controller = Controller::start(cluster, metrics, without_plugins).await;
    let is_created = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_created).await;
    // Until now, its Jobs could have been about to be created.
    assert!(error(cluster).is_null());
    let created = json!({"metadata": {"creationTimestamp": created.to_string()}});
    cluster.merge("jobsets", "a", "job", &created);
    (controller, kept.unwrap())
}

/// Returns how many TrainJobs the metric counts with this state and reason. It has no series with a reason that no TrainJob has.
fn counted(metrics: &Metrics, state: &str, reason: &str) -> u64 {
    let series = format!("trainyard_train_jobs{{state=\"{state}\",reason=\"{reason}\"}} ");
    let text = metrics.text().unwrap();
    let mut counts = text.lines().filter_map(|line| line.strip_prefix(&series));
    counts.next().map_or(0, |count| count.parse().unwrap())
}

fn error(cluster: &Cluster) -> Value {
    let job = cluster.get("trainjobs", "a", "job").unwrap();
    job["metadata"]["annotations"][ERROR_ANNOTATION].clone()
}

fn is_annotated(cluster: &Cluster, wanted: &str) -> bool {
    error(cluster)
        .as_str()
        .is_some_and(|error| error.contains(wanted))
}

/// Returns the messages of the TrainJob's Events.
fn messages(cluster: &Cluster) -> String {
    let events = cluster.all("events").into_iter();
    let events = events.filter(|event| event["involvedObject"]["kind"] == "TrainJob");
    let messages = events.map(|event| event["message"].to_string());
    messages.collect::<Vec<_>>().join("\n")
}

/// An Event of an object, as its controller writes it.
fn event(of: &Value, reason: &str, message: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning",
        "metadata": {"name": format!("{reason}-event"), "namespace": "a"},
        "involvedObject": {"kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]},
        "reason": reason, "message": message, "eventTime": Timestamp::now().to_string(),
    })
}

/// The JobSet's Job with one pod of four.
fn child(job_set: &Value, active: u8) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "job-node-0", "namespace": "a", "uid": "child",
            "ownerReferences": [{
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "job", "controller": true,
                "uid": job_set["metadata"]["uid"],
            }],
        },
        "spec": {"parallelism": 4, "completions": 4}, "status": {"active": active},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_and_pods_that_are_refused_are_reported_until_they_exist() {
    let cluster = Cluster::new();
    let (controller, metrics) = start(&cluster).await;
    let not_created = || counted(&metrics, "waiting", "NotCreated");
    let without_jobs = |cluster: &Cluster| is_annotated(cluster, "it has no Jobs");
    cluster
        .until("a JobSet without Jobs is reported", without_jobs)
        .await;
    cluster
        .until("the TrainJob is counted", |_| not_created() == 1)
        .await;
    let job_set = cluster.get("jobsets", "a", "job").unwrap();
    let refused = "job \"job-node-0\" creation failed with error: Job.batch \"job-node-0\" is invalid: spec: must be equal to nvidia.com/gpu limit";
    cluster.put(event(&job_set, "JobCreationFailed", refused));
    let is_refused = |cluster: &Cluster| {
        messages(cluster).contains("JobSet `job`: JobCreationFailed: job")
            && messages(cluster).contains("must be equal to nvidia.com/gpu limit; ")
    };
    cluster
        .until("the refused Job is reported", is_refused)
        .await;

    cluster.delete("events", "a", "JobCreationFailed-event");
    let node = child(&job_set, 1);
    cluster.put(node.clone());
    let quota = "Error creating: pods \"job-node-0-1-x7k2p\" is forbidden: exceeded quota: pods";
    cluster.put(event(&node, "FailedCreate", quota));
    // Whoever may create Events in the namespace can write any time into them.
    let mut forged = event(&node, "PVCCreationFailed", "forged");
    forged["eventTime"] = "2099-01-01T00:00:00.000000Z".into();
    cluster.put(forged);
    let counts = |ready: u8| json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1, "ready": ready}]}});
    cluster.merge("jobsets", "a", "job", &counts(0));
    let lacks = |cluster: &Cluster| {
        messages(cluster).contains("Job `job-node-0`: FailedCreate: exceeded quota: pods; ")
    };
    cluster.until("the missing pods are reported", lacks).await;
    assert_eq!(not_created(), 1);

    cluster.put(child(&job_set, 4));
    cluster.merge("jobsets", "a", "job", &counts(1));
    cluster
        .until("nothing is wrong any more", |cluster| {
            error(cluster).is_null() && not_created() == 0
        })
        .await;
    assert_eq!(counted(&metrics, "running", ""), 1);
    controller.stop().await;
}

/// A cluster whose role is of an earlier release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_cannot_list_events_still_reports_missing_jobs() {
    let cluster = Cluster::new();
    cluster.set_rule(|_, when, call, _| match (when, call) {
        (When::Before, ("list", "events")) => Act::Quote,
        _ => Act::GoOn,
    });
    let (controller, _) = start(&cluster).await;
    let without_jobs = |cluster: &Cluster| is_annotated(cluster, "it has no Jobs");
    cluster
        .until("a JobSet without Jobs is reported", without_jobs)
        .await;
    controller.stop().await;
}

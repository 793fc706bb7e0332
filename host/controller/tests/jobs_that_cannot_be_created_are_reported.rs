//! A running TrainJob whose Jobs or pods cannot be created says why, until they are created: in its annotation, an Event and the metric.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::stub::{
    cluster::{Act, Cluster, When},
    train_job::{child, counted, error, messages, start_for_old_train_job},
};

fn is_annotated(cluster: &Cluster, wanted: &str) -> bool {
    error(cluster)
        .as_str()
        .is_some_and(|error| error.contains(wanted))
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_and_pods_that_are_refused_are_reported_until_they_exist() {
    let cluster = Cluster::new();
    let (controller, metrics) = start_for_old_train_job(&cluster, Vec::new()).await;
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
    let node = child(&job_set, 4, 1);
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

    cluster.put(child(&job_set, 4, 4));
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
    let (controller, _) = start_for_old_train_job(&cluster, Vec::new()).await;
    let without_jobs = |cluster: &Cluster| is_annotated(cluster, "it has no Jobs");
    cluster
        .until("a JobSet without Jobs is reported", without_jobs)
        .await;
    controller.stop().await;
}

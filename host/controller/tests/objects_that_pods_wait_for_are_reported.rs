//! While pods of a running TrainJob wait, an object that a plugin emitted says why: in the TrainJob's annotation, an Event and the metric.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::metrics::Metrics;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Plugin,
};

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
    plugin::builder,
};

const API_VERSION: &str = "scheduling.x-k8s.io/v1alpha1";

/// A plugin that emits a PodGroup, and reports two of its states.
fn gang() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let group = call.objects_emit(objects, API_VERSION, "PodGroup", "", None)?;
        call.object_report_while(group, "phase/Pending", "the gang waits for its turn")?;
        let unschedulable = "condition/Unschedulable/True";
        call.object_report_while(group, unschedulable, "the gang does not fit")?;
        call.object_set_body(group, r#"{"spec":{"minMember":2}}"#)
    }
    let claim = format!("objects[{API_VERSION}/PodGroup/]");
    builder("gang", &[&claim], |call| Ok(emit(call)?))
}

fn counted(metrics: &Metrics, state: &str, reason: &str) -> u64 {
    let series = format!("trainyard_train_jobs{{state=\"{state}\",reason=\"{reason}\"}} ");
    let text = metrics.text().unwrap();
    let mut counts = text.lines().filter_map(|line| line.strip_prefix(&series));
    counts.next().map_or(0, |count| count.parse().unwrap())
}

fn error(cluster: &Cluster) -> String {
    let job = cluster.get("trainjobs", "a", "job").unwrap();
    let error = &job["metadata"]["annotations"][ERROR_ANNOTATION];
    error.as_str().unwrap_or_default().to_owned()
}

fn messages(cluster: &Cluster) -> String {
    let events = cluster.all("events").into_iter();
    let messages = events.map(|event| event["message"].to_string());
    messages.collect::<Vec<_>>().join("\n")
}

/// A Job of the JobSet with its only pod.
fn child(job_set: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "job-node-0", "namespace": "a", "uid": "child",
            "ownerReferences": [{
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "job", "controller": true,
                "uid": job_set["metadata"]["uid"],
            }],
        },
        "spec": {"parallelism": 1, "completions": 1}, "status": {"active": 1},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_objects_are_reported_until_the_pods_run() {
    let cluster = Cluster::new();
    cluster.put(runtime("gang", &["gang"]));
    let created = Timestamp::now().checked_sub(2.minutes()).unwrap();
    let mut train_job = job("a", "job", "gang", false);
    train_job["metadata"]["creationTimestamp"] = created.to_string().into();
    cluster.put(train_job);
    let mut kept = None;
    let new_metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let plugins = |metrics: &_| {
        kept = Some(Arc::clone(metrics));
        vec![gang()]
    };
    let controller = Controller::start(&cluster, new_metrics, plugins).await;
    let is_created = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_created).await;
    let metrics: Arc<Metrics> = kept.unwrap();
    let waiting = || counted(&metrics, "waiting", "ObjectWaits");

    let job_set = cluster.get("jobsets", "a", "job").unwrap();
    cluster.put(child(&job_set));
    let status = |status: Value| json!({ "status": status });
    let pods = |ready: u8| {
        status(json!({"replicatedJobsStatus": [{"name": "node", "active": 1, "ready": ready}]}))
    };
    cluster.merge(
        "podgroups",
        "a",
        "job",
        &status(json!({"phase": "Pending"})),
    );
    cluster.merge("jobsets", "a", "job", &pods(0));
    cluster
        .until("the phase is reported", |cluster| {
            error(cluster) == "ObjectWaits: PodGroup `job`: the gang waits for its turn"
                && messages(cluster).contains("PodGroup `job`: the gang waits for its turn")
                && waiting() == 1
        })
        .await;

    let condition = json!({"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable"});
    let unschedulable = status(json!({"phase": "Pending", "conditions": [condition]}));
    cluster.merge("podgroups", "a", "job", &unschedulable);
    // Any change of the JobSet has it checked at once, and otherwise it is checked from time to time.
    cluster.merge(
        "jobsets",
        "a",
        "job",
        &json!({"metadata": {"labels": {"touched": "1"}}}),
    );
    let text = "the gang does not fit: 2/2 tasks in gang unschedulable";
    cluster
        .until("the condition is reported", |cluster| {
            messages(cluster).contains(text)
        })
        .await;

    cluster.merge("jobsets", "a", "job", &pods(1));
    cluster
        .until("nothing is wrong any more", |cluster| {
            error(cluster).is_empty() && waiting() == 0
        })
        .await;
    assert_eq!(counted(&metrics, "running", ""), 1);
    controller.stop().await;
}

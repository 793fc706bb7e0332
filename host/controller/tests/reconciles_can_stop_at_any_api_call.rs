//! Wherever a reconcile stops, its writes are in a safe order, and the next reconciles lead to the same result: the snapshot is written
//! before the objects, the objects before the JobSet, and that the JobSet has run is recorded before it is suspended.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Plugin,
};

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
    plugin::builder,
};

const STARTED: &str = "trainyard.dev/started";

/// A plugin that emits a ConfigMap.
fn emits() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let map = call.objects_emit(objects, "v1", "ConfigMap", "-map", None)?;
        call.object_append(map, "key", "text")
    }
    builder("emits", &["objects[v1/ConfigMap/-map]"], |call| {
        Ok(emit(call)?)
    })
}

fn snapshot(cluster: &Cluster) -> Value {
    let snapshot = cluster.get("configmaps", "a", "job-runtime-snapshot");
    snapshot.unwrap_or_default()
}

fn job_set(cluster: &Cluster) -> Value {
    cluster.get("jobsets", "a", "job").unwrap_or_default()
}

/// Whether everything exists that a call requires.
fn is_in_order(cluster: &Cluster, (verb, kind): (&str, &str), body: &Value) -> bool {
    let has_snapshot = snapshot(cluster).is_object();
    match (verb, kind) {
        ("patch", "jobsets") if body["spec"]["replicatedJobs"].is_array() => {
            has_snapshot && cluster.get("configmaps", "a", "job-map").is_some()
        }
        ("patch", "jobsets") if body["spec"]["suspend"] == true => {
            snapshot(cluster)["metadata"]["annotations"][STARTED] == "true"
        }
        ("patch", "configmaps") | ("create", "configmaps") => {
            has_snapshot || body["metadata"]["name"] == "job-runtime-snapshot"
        }
        _ => true,
    }
}

/// Whether a call is one of those that a reconcile makes.
fn is_counted((verb, kind): (&str, &str)) -> bool {
    matches!(kind, "trainjobs" | "jobsets" | "configmaps") && !matches!(verb, "watch" | "list")
}

/// Starts a TrainJob and suspends it; the call with that number is refused. Returns the number of calls.
async fn calls_with_one_refused(refused: usize) -> usize {
    let cluster = Cluster::new();
    cluster.put(runtime("emits", &["emits"]));
    cluster.put(job("a", "job", "emits", false));
    let (calls, disordered) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counted, wrong) = (calls.clone(), disordered.clone());
    cluster.set_rule(move |cluster, when, call, body| {
        if when != When::Before || !is_counted(call) {
            return Act::GoOn;
        }
        if !is_in_order(cluster, call, body) {
            wrong.fetch_add(1, Ordering::SeqCst);
        }
        match counted.fetch_add(1, Ordering::SeqCst) {
            at if at == refused => Act::Refuse,
            _ => Act::GoOn,
        }
    });
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| vec![emits()]).await;
    let runs = |cluster: &Cluster| job_set(cluster)["spec"]["suspend"] == false;
    cluster.until("it runs", runs).await;
    let uid = job_set(&cluster)["metadata"]["uid"].clone();
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "a", "job", &counts);
    let suspend = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", "a", "job", &suspend);
    let waits = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", "job").unwrap();
        let conditions = &job["status"]["conditions"];
        let condition = &conditions[0];
        job_set(cluster)["spec"]["suspend"] == true && condition["status"] == "True"
    };
    cluster.until("it is suspended", waits).await;
    controller.stop().await;
    assert_eq!(
        disordered.load(Ordering::SeqCst),
        0,
        "with call {refused} refused"
    );
    assert_eq!(job_set(&cluster)["metadata"]["uid"], uid);
    assert_eq!(cluster.count("configmaps"), 2);
    assert_eq!(snapshot(&cluster)["immutable"], true);
    calls.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_call_changes_neither_write_order_nor_outcome() {
    let all = calls_with_one_refused(usize::MAX).await;
    assert!(all >= 7, "{all} calls");
    for refused in 0..all {
        calls_with_one_refused(refused).await;
    }
}

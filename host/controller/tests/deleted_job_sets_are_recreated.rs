//! A running JobSet that is deleted is recreated, even if it is deleted while the controller still records an earlier recreation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
};

const RECREATE: &str = "trainyard.dev/recreate";

async fn started(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| Vec::new()).await
}

fn uid(cluster: &Cluster) -> Value {
    let job_set = cluster.get("jobsets", "a", "job").unwrap_or_default();
    job_set["metadata"]["uid"].clone()
}

/// A TrainJob whose status shows a running JobSet.
async fn running() -> (Cluster, Controller) {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", false));
    let controller = started(&cluster).await;
    let is_made = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_made).await;
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "a", "job", &counts);
    let is_reported = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", "job").unwrap();
        job["status"]["jobsStatus"][0]["active"] == 1
    };
    cluster.until("the status counts", is_reported).await;
    (cluster, controller)
}

/// Waits until the JobSet is recreated and the snapshot is no longer marked. The TrainJob must not fail in the meantime.
async fn until_recreated(cluster: &Cluster, before: &Value) {
    let is_another = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", "job").unwrap();
        assert_eq!(job["status"]["conditions"], json!([]), "{job:#}");
        let snapshot = cluster.get("configmaps", "a", "job-runtime-snapshot");
        let annotations = snapshot.unwrap()["metadata"]["annotations"].clone();
        let uid = uid(cluster);
        annotations[RECREATE].is_null() && !uid.is_null() && uid != *before
    };
    cluster.until("it is recreated", is_another).await;
}

/// Whether a call notes that a JobSet was recreated.
fn is_noted(call: (&str, &str), body: &Value) -> bool {
    let annotations = &body["metadata"]["annotations"];
    let annotations = annotations.as_object();
    let mark = annotations.and_then(|all| all.get(RECREATE));
    call == ("patch", "configmaps") && mark == Some(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_set_deleted_during_recreation_is_recreated() {
    for when in [When::Before, When::Done] {
        for made in [true, false] {
            let (cluster, controller) = running().await;
            let deletions = AtomicUsize::new(0);
            cluster.set_rule(move |cluster, now, call, body| {
                let is_it = match made {
                    // Just after it was made.
                    true => now == When::Done && call == ("patch", "jobsets"),
                    // While that is recorded.
                    false => now == when && is_noted(call, body),
                };
                if !is_it || deletions.fetch_add(1, Ordering::Relaxed) > 2 {
                    return Act::GoOn;
                }
                cluster.delete("jobsets", "a", "job");
                Act::Pause
            });
            let before = uid(&cluster);
            cluster.delete("jobsets", "a", "job");
            cluster
                .until("it is recreated and again", |cluster| {
                    cluster.traffic("patch", "jobsets").calls >= 4
                })
                .await;
            until_recreated(&cluster, &before).await;
            controller.stop().await;
        }
    }
}

/// The API server does not answer calls that create a JobSet until the controller restarts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_set_deleted_twice_is_recreated_after_a_restart() {
    let (cluster, controller) = running().await;
    let before = uid(&cluster);
    let (made, refused) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let refusals = refused.clone();
    cluster.set_rule(move |cluster, now, call, _| {
        if call != ("patch", "jobsets") {
            return Act::GoOn;
        }
        if now == When::Before && made.load(Ordering::Relaxed) > 0 {
            refusals.fetch_add(1, Ordering::Relaxed);
            return Act::Refuse;
        }
        if now == When::Done {
            made.fetch_add(1, Ordering::Relaxed);
            cluster.delete("jobsets", "a", "job");
            return Act::Pause;
        }
        Act::GoOn
    });
    cluster.delete("jobsets", "a", "job");
    let is_refused = |_: &Cluster| refused.load(Ordering::Relaxed) > 0;
    cluster.until("it is tried once more", is_refused).await;
    controller.stop().await;
    cluster.forget_rule();
    let controller = started(&cluster).await;
    until_recreated(&cluster, &before).await;
    controller.stop().await;
}

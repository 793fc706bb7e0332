//! The status of a TrainJob is suspended only if its JobSet is.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

fn conditions(cluster: &Cluster) -> Value {
    let job = cluster.get("trainjobs", "a", "job").unwrap();
    job["status"]["conditions"].clone()
}

/// A finalizer keeps the JobSet, and the JobSet controller does not change a JobSet that is being deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn train_job_becomes_suspended_only_after_its_job_set_is_gone() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", false));
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    let is_made = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_made).await;
    let deleted = json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/keep"]},
        "status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]},
    });
    cluster.merge("jobsets", "a", "job", &deleted);
    let counts = |active: u8| {
        move |cluster: &Cluster| {
            let job = cluster.get("trainjobs", "a", "job").unwrap();
            job["status"]["jobsStatus"][0]["active"] == active
        }
    };
    cluster.until("the status counts", counts(1)).await;
    let suspend = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", "a", "job", &suspend);
    // The status is written once more after that.
    let more = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 2}]}});
    cluster.merge("jobsets", "a", "job", &more);
    cluster.until("the status counts again", counts(2)).await;
    assert_eq!(conditions(&cluster), json!([]));

    cluster.delete("jobsets", "a", "job");
    let waits = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap_or_default();
        job_set["spec"]["suspend"] == true && conditions(cluster)[0]["status"] == "True"
    };
    cluster.until("another one waits", waits).await;
    assert_eq!(conditions(&cluster)[0]["type"], "Suspended");
    controller.stop().await;
}

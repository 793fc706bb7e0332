//! A controller whose API server gets the state of an earlier backup does not act on what it knew before.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::{ControllerError, metrics::Metrics};

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

async fn started(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| Vec::new()).await
}

fn suspend(cluster: &Cluster, name: &str, suspend: bool) {
    let spec = json!({"spec": {"suspend": suspend}});
    cluster.merge("trainjobs", "a", name, &spec);
}

fn job_set(cluster: &Cluster, name: &str) -> Value {
    cluster.get("jobsets", "a", name).unwrap_or_default()
}

/// Lets a JobSet complete, and waits until its TrainJob has.
async fn complete(cluster: &Cluster, name: &'static str) {
    let end = json!({
        "type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"status": {"conditions": [end]}});
    cluster.merge("jobsets", "a", name, &status);
    let is_complete = move |cluster: &Cluster| {
        let job = cluster.get("trainjobs", "a", name).unwrap();
        job["status"]["conditions"][0]["type"] == "Complete"
    };
    cluster.until("it is complete", is_complete).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_starts_anew_from_the_restored_state() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    for name in ["runs", "ended", "ends-later"] {
        cluster.put(job("a", name, "plain", false));
    }
    let controller = started(&cluster).await;
    let job_sets = |count| move |cluster: &Cluster| cluster.count("jobsets") == count;
    cluster.until("all have a JobSet", job_sets(3)).await;
    complete(&cluster, "ended").await;
    cluster.delete("jobsets", "a", "ended");
    let uid = job_set(&cluster, "runs")["metadata"]["uid"].clone();

    let backup = cluster.backup();
    complete(&cluster, "ends-later").await;
    cluster.put(job("a", "later", "plain", false));
    cluster.until("it has a JobSet", job_sets(3)).await;
    suspend(&cluster, "runs", true);
    let is = |suspended| {
        move |cluster: &Cluster| job_set(cluster, "runs")["spec"]["suspend"] == suspended
    };
    cluster.until("it is suspended", is(true)).await;

    cluster.restore(&backup);
    let ended = controller.ended().await;
    let text = ended.to_string();
    assert!(matches!(ended, ControllerError::StateReplaced(_)), "{text}");
    assert!(
        text.starts_with("the API server returned resourceVersion "),
        "{text}"
    );
    let why = ", so its state was replaced by an older one, such as a backup of etcd; start the controller again, as a Deployment does by itself";
    assert!(text.ends_with(why), "{text}");
    let controller = started(&cluster).await;
    // Its resourceVersion is lower than that of the change before.
    suspend(&cluster, "runs", true);
    cluster.until("it is suspended again", is(true)).await;
    suspend(&cluster, "runs", false);
    cluster.until("it runs again", is(false)).await;
    complete(&cluster, "ends-later").await;
    controller.stop().await;
    assert_eq!(job_set(&cluster, "runs")["metadata"]["uid"], uid);
    assert_eq!(cluster.created_since(&backup, "jobsets"), [""; 0]);
}

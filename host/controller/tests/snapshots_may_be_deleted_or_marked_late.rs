//! A TrainJob that waits follows its own changes though its snapshot was deleted, and a mark that could not be taken away from a
//! snapshot goes later.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::cluster::Cluster;
use crate::stub::controller::{Controller, job, runtime};

const SNAPSHOT: &str = "job-runtime-snapshot";
const STARTED: &str = "trainyard.dev/started";
const RECREATE: &str = "trainyard.dev/recreate";
const RECREATED: &str = "trainyard.dev/recreated";

async fn started(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| Vec::new()).await
}

fn job_set(cluster: &Cluster) -> Value {
    cluster.get("jobsets", "a", "job").unwrap_or_default()
}

fn snapshot(cluster: &Cluster) -> Value {
    cluster.get("configmaps", "a", SNAPSHOT).unwrap_or_default()
}

fn image(job_set: &Value) -> &Value {
    let pods = "/spec/replicatedJobs/0/template/spec/template/spec";
    let image = job_set.pointer(&format!("{pods}/containers/0/image"));
    image.unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_train_job_without_a_snapshot_follows_its_changes_and_has_not_started() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", true));
    let controller = started(&cluster).await;
    let is_made = |cluster: &Cluster| image(&job_set(cluster)) == "image";
    cluster.until("there is a JobSet", is_made).await;

    cluster.delete("configmaps", "a", SNAPSHOT);
    let labels = json!({"spec": {"labels": {"label": "new"}}});
    cluster.merge("trainjobs", "a", "job", &labels);
    let follows = |cluster: &Cluster| job_set(cluster)["metadata"]["labels"]["label"] == "new";
    cluster.until("the JobSet follows", follows).await;
    assert_eq!(
        snapshot(&cluster)["metadata"]["annotations"][STARTED],
        Value::Null
    );
    assert_ne!(snapshot(&cluster)["immutable"], true);
    controller.stop().await;
}

/// Nothing but the mark says that the last JobSet was deleted before it ended. Left on, the next one would run again after its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_that_stayed_when_a_job_set_was_made_again_goes_whether_it_runs_or_waits() {
    for suspended in [false, true] {
        let cluster = Cluster::new();
        cluster.put(runtime("plain", &[]));
        cluster.put(job("a", "job", "plain", false));
        let controller = started(&cluster).await;
        let is_made = |cluster: &Cluster| image(&job_set(cluster)) == "image";
        cluster.until("there is a JobSet", is_made).await;
        controller.stop().await;

        // As a controller leaves it that is killed between the JobSet and the mark.
        let marked = |mark: &str| json!({"metadata": {"annotations": {mark: "true"}}});
        cluster.merge("configmaps", "a", SNAPSHOT, &marked(RECREATE));
        cluster.merge("jobsets", "a", "job", &marked(RECREATED));
        let suspend = json!({"spec": {"suspend": suspended}});
        cluster.merge("trainjobs", "a", "job", &suspend);
        cluster.merge("jobsets", "a", "job", &suspend);
        let controller = started(&cluster).await;
        let is_gone = |cluster: &Cluster| {
            let annotations = &snapshot(cluster)["metadata"]["annotations"];
            annotations[RECREATE] == Value::Null
        };
        cluster.until("the mark is gone", is_gone).await;
        controller.stop().await;
    }
}

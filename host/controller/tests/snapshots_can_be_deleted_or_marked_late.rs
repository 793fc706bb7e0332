//! A queued TrainJob follows its changes even if its snapshot was deleted, and a mark that could not be removed from a snapshot is removed
//! later.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

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
async fn queued_train_job_without_a_snapshot_follows_changes_and_has_not_started() {
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

/// Only the mark shows that the last JobSet was deleted before it ended. If it stayed, the next JobSet would run again after its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leftover_recreate_mark_is_removed_whether_running_or_queued() {
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

/// A queued TrainJob, and a change that a user makes to its snapshot.
async fn queued(harm: impl FnOnce(&Cluster)) -> (Cluster, Controller) {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", true));
    let controller = started(&cluster).await;
    let is_made = |cluster: &Cluster| image(&job_set(cluster)) == "image";
    cluster.until("there is a JobSet", is_made).await;
    harm(&cluster);
    (cluster, controller)
}

fn break_it(cluster: &Cluster) {
    let broken = json!({"data": {"runtime": "kind: ["}});
    cluster.merge("configmaps", "a", SNAPSHOT, &broken);
}

fn take_it(cluster: &Cluster) {
    let foreign = json!({"metadata": {"ownerReferences": null}});
    cluster.merge("configmaps", "a", SNAPSHOT, &foreign);
}

fn delete_it(cluster: &Cluster) {
    cluster.delete("configmaps", "a", SNAPSHOT);
}

/// An edit that JobSet refuses in a JobSet that has run.
fn edit(manager: &str, suspend: bool) -> Value {
    let pods = json!({"serviceAccountName": "new"});
    let node = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
    let spec = json!({"template": {"spec": {"replicatedJobs": [node]}}});
    let patch = json!({"manager": manager, "trainingRuntimeSpec": spec});
    json!({"spec": {"suspend": suspend, "runtimePatches": [patch]}})
}

fn account(cluster: &Cluster) -> Value {
    let pods = "/spec/replicatedJobs/0/template/spec/template/spec";
    let job_set = job_set(cluster);
    let account = job_set.pointer(&format!("{pods}/serviceAccountName"));
    account.cloned().unwrap_or_default()
}

fn is_reported(cluster: &Cluster, words: &str) -> bool {
    let has = |event: &Value| {
        let texts = ["message", "note"].map(|key| event[key].as_str().unwrap_or_default());
        texts.iter().any(|text| text.contains(words))
    };
    cluster.all("events").iter().any(has)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_queued_train_jobs_need_no_snapshot() {
    for harm in [break_it, delete_it] {
        for suspend in [true, false] {
            let (cluster, controller) = queued(harm).await;
            let edit = edit("example.com/queue", suspend);
            cluster.merge("trainjobs", "a", "job", &edit);
            let follows = |cluster: &Cluster| {
                account(cluster) == "new" && job_set(cluster)["spec"]["suspend"] == suspend
            };
            cluster.until("the JobSet follows", follows).await;
            let data = snapshot(&cluster)["data"].clone();
            assert!(
                data["runtime"].as_str().unwrap().contains("image: image"),
                "{data:#}"
            );
            assert!(data["plan"].is_string(), "{data:#}");
            controller.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_train_jobs_wait_while_refused_or_with_a_foreign_snapshot() {
    let anothers = ("example.com/queue", "does not belong to this TrainJob");
    let refused = ("me", "must be a domain and a path");
    for (harm, (manager, words)) in [
        (take_it as fn(&Cluster), anothers),
        (break_it, refused),
        (delete_it, refused),
    ] {
        let (cluster, controller) = queued(harm).await;
        cluster.merge("trainjobs", "a", "job", &edit(manager, false));
        let reported = |cluster: &Cluster| is_reported(cluster, words);
        cluster.until("an Event says why it waits", reported).await;
        assert_eq!(job_set(&cluster)["spec"]["suspend"], true);
        assert_eq!(account(&cluster), Value::Null);
        // Once the problem is solved, it continues.
        if words == anothers.1 {
            delete_it(&cluster);
        }
        cluster.merge("trainjobs", "a", "job", &edit("example.com/queue", false));
        let runs = |cluster: &Cluster| {
            account(cluster) == "new" && job_set(cluster)["spec"]["suspend"] == false
        };
        cluster.until("it continues", runs).await;
        controller.stop().await;
    }
}

/// Both marks cannot be true for one JobSet. A JobSet that has run is not changed, and an Event reports it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edit_blocked_by_a_forged_mark_is_reported() {
    let forge = |cluster: &Cluster| {
        let marked = json!({"metadata": {"annotations": {STARTED: "true"}}});
        cluster.merge("jobsets", "a", "job", &marked);
    };
    let (cluster, controller) = queued(forge).await;
    cluster.merge("trainjobs", "a", "job", &edit("example.com/queue", true));
    let reported = |cluster: &Cluster| is_reported(cluster, "does not follow the TrainJob");
    cluster.until("an Event says so", reported).await;
    controller.stop().await;
}

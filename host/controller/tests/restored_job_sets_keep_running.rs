//! A JobSet that was restored from a backup before its TrainJob keeps running: it is not changed, the error says how to keep it, and the TrainJob
//! adopts it once it is its owner.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "a", "job").unwrap()
}

fn job_set(cluster: &Cluster) -> Value {
    cluster.get("jobsets", "a", "job").unwrap()
}

/// The TrainJob as the owner of its JobSet.
fn owner(uid: &Value) -> Value {
    json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_job_set_without_owner_runs_on_and_is_adopted() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"namespace": "a", "name": "job", "annotations": {"trainyard.dev/started": "true"}},
        "spec": {"suspend": false, "replicatedJobs": [{"name": "node"}]},
        "status": {"replicatedJobsStatus": [{"name": "node", "active": 1, "ready": 1}]},
    }));
    let restored = job_set(&cluster);
    cluster.put(job("a", "job", "plain", false));
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    let is_reported = |cluster: &Cluster| {
        let error = &train_job(cluster)["metadata"]["annotations"][ERROR_ANNOTATION];
        !error.is_null() && cluster.count("events") > 0
    };
    cluster.until("the JobSet is reported", is_reported).await;
    let error = train_job(&cluster)["metadata"]["annotations"][ERROR_ANNOTATION].to_string();
    assert!(
        error.starts_with("\"ForeignObject: JobSet `job` does not belong to this TrainJob")
            && error.contains("make the TrainJob its controller in metadata.ownerReferences"),
        "{error}"
    );
    let message = cluster.all("events")[0]["message"].to_string();
    assert!(
        message.contains("make the TrainJob its controller in metadata.ownerReferences")
            && message.contains("deleting the JobSet ends its run"),
        "{message}"
    );
    assert_eq!(job_set(&cluster), restored);

    let uid = train_job(&cluster)["metadata"]["uid"].clone();
    let owned = json!({"metadata": {"ownerReferences": owner(&uid)}});
    cluster.merge("jobsets", "a", "job", &owned);
    let is_adopted = |cluster: &Cluster| {
        let job = train_job(cluster);
        job["status"]["jobsStatus"][0]["active"] == 1
            && job["metadata"]["annotations"][ERROR_ANNOTATION].is_null()
    };
    cluster.until("the JobSet is adopted", is_adopted).await;
    assert_eq!(job_set(&cluster)["spec"], restored["spec"]);
    controller.stop().await;
}

/// The garbage collector deletes such an object; until then, it is left unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_job_set_of_the_earlier_uid_is_awaited_and_recreated() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"namespace": "a", "name": "job", "ownerReferences": owner(&json!("earlier"))},
        "spec": {"suspend": false, "replicatedJobs": [{"name": "node"}]},
    }));
    let restored = job_set(&cluster);
    cluster.put(job("a", "job", "plain", false));
    // The controller reconciles it last.
    cluster.put(job("a", "last", "plain", false));
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    let is_created = |cluster: &Cluster| cluster.get("jobsets", "a", "last").is_some();
    cluster
        .until("the other one has a JobSet", is_created)
        .await;
    assert_eq!(job_set(&cluster), restored);
    cluster.delete("jobsets", "a", "job");
    let is_created = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
    cluster
        .until("it has a JobSet of its own", is_created)
        .await;
    let uid = train_job(&cluster)["metadata"]["uid"].clone();
    assert_eq!(
        job_set(&cluster)["metadata"]["ownerReferences"][0]["uid"],
        uid
    );
    controller.stop().await;
}

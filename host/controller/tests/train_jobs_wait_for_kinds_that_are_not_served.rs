//! A TrainJob that needs an object of a kind without a CRD, such as a PodGroup, waits, and continues once the API server serves the kind. No
//! other answer is taken for a missing CRD. A PodGroup with the TrainJob's name is changed only if the TrainJob owns it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
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

const API_VERSION: &str = "scheduling.x-k8s.io/v1alpha1";

/// A plugin that emits a PodGroup with the TrainJob's name.
fn gang() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let group = call.objects_emit(objects, API_VERSION, "PodGroup", "", None)?;
        call.object_set_apply(group, "while-suspended")?;
        call.object_set_body(group, r#"{"spec":{"minMember":2}}"#)
    }
    let claim = format!("objects[{API_VERSION}/PodGroup/]");
    builder("gang", &[&claim], |call| Ok(emit(call)?))
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.put(runtime("gang", &["gang"]));
    cluster
}

async fn start(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| vec![gang()]).await
}

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "a", "job").unwrap()
}

fn pod_group(cluster: &Cluster) -> Option<Value> {
    cluster.get("podgroups", "a", "job")
}

fn error(cluster: &Cluster) -> String {
    let error = &train_job(cluster)["metadata"]["annotations"][ERROR_ANNOTATION];
    error.as_str().unwrap_or_default().to_owned()
}

fn event(cluster: &Cluster) -> String {
    let messages = cluster.all("events").into_iter();
    let messages = messages.filter_map(|event| Some(event["message"].as_str()?.to_owned()));
    messages.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_job_continues_once_the_crd_is_installed() {
    let cluster = cluster();
    cluster.stop_serving("podgroups");
    cluster.put(job("a", "job", "gang", false));
    let controller = start(&cluster).await;
    let is_reported = |cluster: &Cluster| !event(cluster).is_empty() && !error(cluster).is_empty();
    cluster.until("the reason is reported", is_reported).await;
    assert_eq!(
        event(&cluster),
        "PodGroup `job` is needed, but the API server does not serve PodGroup (scheduling.x-k8s.io/v1alpha1); install its CRD, and the TrainJob continues"
    );
    assert_eq!(
        error(&cluster),
        "KindNotServed: PodGroup `job` is needed, but the API server does not serve PodGroup (scheduling.x-k8s.io/v1alpha1); install its CRD, and the TrainJob continues"
    );
    // Without its PodGroup, no pod of the gang may be created.
    assert_eq!(cluster.count("jobsets"), 0);
    // Retries alone would be minutes apart by now.
    let events = cluster.traffic("patch", "events").calls;
    let is_retried = |cluster: &Cluster| cluster.traffic("patch", "events").calls >= events + 3;
    cluster.until("it is retried", is_retried).await;

    cluster.start_serving("podgroups");
    let installed = Instant::now();
    let is_reconciled = |cluster: &Cluster| {
        cluster.get("jobsets", "a", "job").is_some() && error(cluster).is_empty()
    };
    cluster.until("it is reconciled", is_reconciled).await;
    assert!(installed.elapsed() < Duration::from_secs(60));
    let group = pod_group(&cluster).unwrap();
    assert_eq!(group["spec"]["minMember"], 2);
    let owner = &group["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], train_job(&cluster)["metadata"]["uid"]);
    controller.stop().await;
}

/// The snapshot of the first attempt has the runtime with the plugin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_job_that_waits_follows_its_corrected_runtime() {
    let cluster = cluster();
    cluster.stop_serving("podgroups");
    cluster.put(job("a", "job", "gang", false));
    let controller = start(&cluster).await;
    let is_reported = |cluster: &Cluster| error(cluster).starts_with("KindNotServed");
    cluster.until("the reason is reported", is_reported).await;
    assert_eq!(cluster.count("configmaps"), 1);

    cluster.put(runtime("gang", &[]));
    let runs = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
    cluster.until("there is a JobSet", runs).await;
    let is_current = |cluster: &Cluster| error(cluster).is_empty();
    cluster.until("the error is removed", is_current).await;
    assert_eq!(pod_group(&cluster), None);
    controller.stop().await;
}

/// A webhook may answer with any status, and the namespace may be gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_answers_are_not_taken_for_a_missing_crd() {
    for message in [
        "admission webhook \"groups.example.com\" denied the request: queue not found",
        "namespaces \"a\" not found",
        "the server could not find the requested resource",
    ] {
        let cluster = cluster();
        cluster.put(job("a", "job", "gang", false));
        cluster.set_rule(move |_, when, call, _| match (when, call) {
            (When::Before, ("patch", "podgroups")) => Act::NotFound(message),
            _ => Act::GoOn,
        });
        let controller = start(&cluster).await;
        let is_reported =
            |cluster: &Cluster| !event(cluster).is_empty() && !error(cluster).is_empty();
        cluster.until("the answer is reported", is_reported).await;
        assert_eq!(
            event(&cluster),
            format!("writing PodGroup `job`: {message}")
        );
        assert_eq!(error(&cluster), "APIError: writing PodGroup `job`");
        cluster.forget_rule();
        let is_reconciled = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
        cluster.until("it is reconciled", is_reconciled).await;
        controller.stop().await;
    }
}

/// The CRD is deleted with all PodGroups while a JobSet runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_job_set_stays_if_the_crd_is_deleted() {
    let cluster = cluster();
    cluster.put(job("a", "job", "gang", false));
    let controller = start(&cluster).await;
    let runs = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
    cluster.until("there is a JobSet", runs).await;
    cluster.delete("podgroups", "a", "job");
    cluster.stop_serving("podgroups");
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "a", "job", &counts);
    let is_reported = |cluster: &Cluster| error(cluster).starts_with("KindNotServed");
    cluster.until("the reason is reported", is_reported).await;
    let is_counted =
        |cluster: &Cluster| train_job(cluster)["status"]["jobsStatus"][0]["active"] == 1;
    cluster.until("the status is current", is_counted).await;
    let job_set = cluster.get("jobsets", "a", "job").unwrap();
    assert_eq!(job_set["spec"]["suspend"], false);

    cluster.start_serving("podgroups");
    let is_restored = |cluster: &Cluster| pod_group(cluster).is_some() && error(cluster).is_empty();
    cluster
        .until("the PodGroup is recreated", is_restored)
        .await;
    controller.stop().await;
}

/// The reference creates a PodGroup of the same name with the same owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_group_of_the_train_job_is_adopted() {
    let cluster = cluster();
    cluster.put(job("a", "job", "gang", false));
    let uid = train_job(&cluster)["metadata"]["uid"].clone();
    cluster.put(json!({
        "apiVersion": API_VERSION, "kind": "PodGroup",
        "metadata": {"namespace": "a", "name": "job", "ownerReferences": [{
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": {"minMember": 3},
        "status": {"phase": "Pending"},
    }));
    let before = pod_group(&cluster).unwrap();
    // Its scheduler writes the status between the read and the write.
    let is_written = AtomicBool::new(false);
    cluster.set_rule(move |cluster, when, call, _| {
        let is_write = when == When::Before && call == ("patch", "podgroups");
        if is_write && !is_written.swap(true, Ordering::SeqCst) {
            let status = json!({"status": {"phase": "Scheduling"}});
            cluster.merge("podgroups", "a", "job", &status);
        }
        Act::GoOn
    });
    let mut metrics = None;
    let with = |queue: &_| Arc::new(Metrics::new(queue));
    let plugins = |known: &Arc<Metrics>| {
        metrics = Some(known.clone());
        vec![gang()]
    };
    let controller = Controller::start(&cluster, with, plugins).await;
    let runs = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
    cluster.until("there is a JobSet", runs).await;
    let after = pod_group(&cluster).unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["minMember"], 2);
    assert_eq!(after["status"]["phase"], "Scheduling");
    // No reconcile has failed, so nothing waited for a retry.
    let text = metrics.unwrap().text().unwrap();
    let errors = r#"controller_runtime_reconcile_errors_total{controller="trainjob_controller"}"#;
    let mut errors = text.lines().filter(|line| line.starts_with(errors));
    assert!(errors.all(|line| line.ends_with(" 0")), "{text}");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_group_of_another_owner_is_not_changed() {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": name, "uid": "other", "controller": true}]);
    for (owners, reason) in [
        (json!([]), "it is owned by no controller"),
        (owner("Job", "job"), "it is owned by Job job (other)"),
    ] {
        let cluster = cluster();
        cluster.put(job("a", "job", "gang", false));
        cluster.put(json!({
            "apiVersion": API_VERSION, "kind": "PodGroup",
            "metadata": {"namespace": "a", "name": "job", "ownerReferences": owners},
            "spec": {"minMember": 3},
        }));
        let before = pod_group(&cluster);
        let controller = start(&cluster).await;
        let is_reported = |cluster: &Cluster| event(cluster).contains(reason);
        cluster.until("the owner is reported", is_reported).await;
        assert_eq!(pod_group(&cluster), before);
        assert_eq!(cluster.count("jobsets"), 0);

        cluster.delete("podgroups", "a", "job");
        let runs = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
        cluster.until("it is reconciled", runs).await;
        controller.stop().await;
    }
}

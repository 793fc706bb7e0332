//! A user who can write ConfigMaps can forge a TrainJob's snapshot. No pods are created from it or placed by it, and of the listed objects,
//! the controller requests only those that a plugin can have emitted for the TrainJob.

use std::sync::Arc;

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

const SNAPSHOT: &str = "job-runtime-snapshot";

async fn started(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| Vec::new()).await
}

fn entry(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "apply": "once"})
}

/// The lists, with the report for each. A kind that no plugin claims is skipped.
fn lists() -> [(Vec<Value>, &'static str); 7] {
    let map = |name: &str| entry("v1", "ConfigMap", name);
    [
        (
            vec![entry(
                "jobset.x-k8s.io/v1alpha2/jobsets?watch=true&x=",
                "JobSet",
                "job-a",
            )],
            "/JobSet` is not a kind",
        ),
        (
            vec![entry("jobset.x-k8s.io/v1alpha2", "JobSet", "job-a")],
            "/JobSet` is a kind that plugins cannot emit",
        ),
        (
            vec![entry(
                "v1%2Fnamespaces%2Fvictim%2Fconfigmaps%2Fa?x=",
                "ConfigMap",
                "job-a",
            )],
            "/ConfigMap` is not a kind",
        ),
        (
            vec![map("another-a")],
            "is not the TrainJob's name with a suffix",
        ),
        (vec![map("job-a?watch=true&x=")], "is not a DNS subdomain"),
        (
            (0..14_500).map(|at| map(&format!("job-{at}"))).collect(),
            "more than a list of 16 objects",
        ),
        (
            vec![
                entry("example.com/v1", "Widget", "job-a"),
                entry("v1", "Secret", "job-a"),
                map("job-b"),
            ],
            "data: another client changed it",
        ),
    ]
}

/// After a restart the list is read once the JobSet has changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_that_no_plugin_emits_are_never_requested() {
    for (list, problem) in lists() {
        let cluster = Cluster::new();
        cluster.put(runtime("plain", &[]));
        cluster.put(job("a", "job", "plain", false));
        // However long this takes, its Jobs are not late, for which they would be listed.
        let created = Timestamp::now().checked_add(1.hours()).unwrap().to_string();
        let created = json!({"metadata": {"creationTimestamp": created}});
        cluster.merge("trainjobs", "a", "job", &created);
        let controller = started(&cluster).await;
        let runs = |cluster: &Cluster| cluster.get("jobsets", "a", "job").is_some();
        cluster.until("there is a JobSet", runs).await;
        controller.stop().await;

        let data = json!({"data": {"objects": json!(list).to_string()}});
        cluster.merge("configmaps", "a", SNAPSHOT, &data);
        let asked = cluster.all_traffic();
        let controller = started(&cluster).await;
        // The first pass after a start notes the JobSet as it is; its changes come after that.
        let change = |at: usize| {
            let poke = json!({"metadata": {"annotations": {"poke": at.to_string()}}});
            cluster.merge("jobsets", "a", "job", &poke);
        };
        for at in 0.. {
            change(at);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if is_reported(&cluster, problem) {
                break;
            }
            assert!(at < 600, "not reported: {problem}");
        }
        controller.stop().await;
        for (verb, kind) in cluster.all_traffic().keys() {
            // What watches deliver is not requested.
            let is_new = verb != "event" && !asked.contains_key(&(verb.clone(), kind.clone()));
            let is_its_own = ["configmaps", "events", "trainjobs"].contains(&&**kind);
            assert!(!is_new || is_its_own, "{verb} {kind} for {problem}");
        }
        assert!(
            cluster.traffic("get", "configmaps").calls < 1_000,
            "{problem}"
        );
    }
}

fn is_reported(cluster: &Cluster, problem: &str) -> bool {
    let message = |event: &Value| event["message"].as_str().unwrap_or_default().to_owned();
    let mut messages = cluster
        .all("events")
        .into_iter()
        .map(|event| message(&event));
    messages.any(|text| text.contains(problem))
}

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "a", "job").unwrap()
}

fn job_set(cluster: &Cluster) -> Value {
    cluster.get("jobsets", "a", "job").unwrap_or_default()
}

const PODS: &str = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";

/// The data of a snapshot whose pods have access to the node, and may run on any.
fn forged_data() -> Value {
    let mut forged = runtime("plain", &[]);
    let pods = forged.pointer_mut(PODS).unwrap();
    pods["hostPID"] = json!(true);
    pods["tolerations"] = json!([{"operator": "Exists"}]);
    let placement =
        json!({"node": {"/spec/nodeSelector": {"node-role.kubernetes.io/control-plane": ""}}});
    json!({"runtime": forged.to_string(), "placement": placement.to_string()})
}

/// Whether the JobSet has anything of the forged snapshot.
fn is_forged(cluster: &Cluster) -> bool {
    let text = job_set(cluster).to_string();
    ["hostPID", "tolerations", "nodeSelector"]
        .iter()
        .any(|field| text.contains(field))
}

fn forge(cluster: &Cluster) {
    cluster.merge("configmaps", "a", SNAPSHOT, &json!({"data": forged_data()}));
}

fn set_suspend(cluster: &Cluster, suspend: bool) {
    let patch = json!({"spec": {"suspend": suspend}});
    cluster.merge("trainjobs", "a", "job", &patch);
}

const CHANGED: &str = "data: another client changed it";

/// A TrainJob with its JobSet.
async fn with_job_set(suspend: bool) -> (Cluster, Controller) {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", suspend));
    let controller = started(&cluster).await;
    let is_made = |cluster: &Cluster| job_set(cluster)["spec"]["suspend"] == suspend;
    cluster.until("there is a JobSet", is_made).await;
    (cluster, controller)
}

async fn until_it_runs(cluster: &Cluster) {
    let runs = |cluster: &Cluster| job_set(cluster)["spec"]["suspend"] == false;
    cluster.until("it runs", runs).await;
    assert!(!is_forged(cluster), "{:#}", job_set(cluster));
}

/// The snapshot is taken again from the current runtime, and the JobSet vouches for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_train_job_starts_from_the_current_runtime() {
    let (cluster, controller) = with_job_set(true).await;
    forge(&cluster);
    set_suspend(&cluster, false);
    until_it_runs(&cluster).await;
    let is_said = |cluster: &Cluster| is_reported(cluster, CHANGED);
    cluster.until("an Event says so", is_said).await;
    let snapshot = cluster.get("configmaps", "a", SNAPSHOT).unwrap();
    let text = snapshot["data"].to_string();
    assert!(
        !text.contains("hostPID") && !text.contains("control-plane"),
        "{text}"
    );
    controller.stop().await;
}

/// The reference's snapshots have only the runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_like_the_references_do_not_pin_queued_train_jobs() {
    let (cluster, controller) = with_job_set(true).await;
    let mut only_the_runtime = cluster.get("configmaps", "a", SNAPSHOT).unwrap();
    only_the_runtime["data"] = json!({"runtime": forged_data()["runtime"]});
    cluster.delete("configmaps", "a", SNAPSHOT);
    cluster.put(only_the_runtime);
    set_suspend(&cluster, false);
    until_it_runs(&cluster).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_train_job_is_not_placed_by_it() {
    let (cluster, controller) = with_job_set(false).await;
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "a", "job", &counts);
    set_suspend(&cluster, true);
    let is_marked = |cluster: &Cluster| {
        let is_pinned = cluster.get("configmaps", "a", SNAPSHOT).unwrap()["immutable"] == true;
        is_pinned && job_set(cluster)["spec"]["suspend"] == true
    };
    cluster.until("it is suspended and marked", is_marked).await;
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 0}]}});
    cluster.merge("jobsets", "a", "job", &counts);
    // An immutable ConfigMap can be deleted and created again.
    forge(&cluster);
    set_suspend(&cluster, false);
    until_it_runs(&cluster).await;
    let is_said = |cluster: &Cluster| is_reported(cluster, CHANGED);
    cluster.until("an Event says so", is_said).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_job_set_is_recreated_once_the_snapshot_is_deleted() {
    let (cluster, controller) = with_job_set(false).await;
    forge(&cluster);
    cluster.delete("jobsets", "a", "job");
    let is_said = |cluster: &Cluster| is_reported(cluster, CHANGED);
    cluster.until("an Event says so", is_said).await;
    assert_eq!(job_set(&cluster), Value::Null);
    cluster.delete("configmaps", "a", SNAPSHOT);
    until_it_runs(&cluster).await;
    controller.stop().await;
}

/// Neither a JobSet nor the controller's memory vouches for the snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_without_a_job_set_is_replaced_after_a_restart() {
    let (cluster, controller) = with_job_set(true).await;
    let is_suspended =
        |cluster: &Cluster| train_job(cluster)["status"]["conditions"][0]["type"] == "Suspended";
    cluster.until("the status says so", is_suspended).await;
    controller.stop().await;
    let counts = json!({"status": {"jobsStatus": [{"name": "node", "suspended": 1}]}});
    cluster.merge("trainjobs", "a", "job", &counts);
    forge(&cluster);
    cluster.delete("jobsets", "a", "job");
    set_suspend(&cluster, false);
    let controller = started(&cluster).await;
    until_it_runs(&cluster).await;
    controller.stop().await;
}

/// It was created before the controller's, for a TrainJob whose runtime does not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_of_another_client_stands_for_no_missing_runtime() {
    let cluster = Cluster::new();
    cluster.put(job("a", "job", "plain", false));
    let owner = json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "controller": true,
        "uid": train_job(&cluster)["metadata"]["uid"],
    }]);
    cluster.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "a", "name": SNAPSHOT, "ownerReferences": owner}, "data": forged_data(),
    }));
    let controller = started(&cluster).await;
    let is_said =
        |cluster: &Cluster| is_reported(cluster, "there is no ClusterTrainingRuntime `plain`");
    cluster.until("an Event says so", is_said).await;
    assert_eq!(job_set(&cluster), Value::Null);
    cluster.put(runtime("plain", &[]));
    until_it_runs(&cluster).await;
    controller.stop().await;
}

//! A user who can write ConfigMaps can forge a TrainJob's snapshot. Of the listed objects, the controller requests only those that a plugin
//! can have emitted for the TrainJob.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

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
            "ConfigMap `job-b` is missing although the running JobSet uses it",
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
            let is_new = !asked.contains_key(&(verb.clone(), kind.clone()));
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

//! kube-apiserver can be killed and restarted at the same address, with its data, and its clients continue.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Fate, Own, Resource, Test, Write};

fn jobset() -> Value {
    let job = json!({
        "parallelism": 2,
        "completions": 2,
        "template": {"spec": {"containers": [{"name": "node", "image": "example.com/trainer"}]}},
    });
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "long"},
        "spec": {"replicatedJobs": [{"name": "workers", "template": {"spec": job}}]},
    })
}

async fn job_set_completes_across_an_api_server_restart(Own(cluster): &Own<Cluster>) -> Result<()> {
    let namespace = cluster.new_namespace().await?;
    cluster.kubelet().decide(&namespace, |_: &Pod| Fate::Hold);
    let (jobsets, pods) = (Resource::jobsets(), Resource::pods());
    let jobsets = cluster.api(&jobsets, &namespace);
    let made = jobsets.create(&jobset(), &Write::strict()).await?;
    made.accepted()?;
    let run = |pods: &[Value]| {
        let phases = pods.iter().map(|pod| pod.pointer("/status/phase"));
        let running = phases.filter(|phase| *phase == Some(&json!("Running")));
        running.count() == 2
    };
    let pods = cluster.api(&pods, &namespace);
    let before = pods.until_all("the pods run", run).await?;
    let plane = cluster.plane();
    let url = plane.url();
    plane.kill_api_server()?;
    let all: kube::Api<Pod> = kube::Api::all(cluster.client().clone());
    ensure!(all.list(&ListParams::default()).await.is_err());
    // A decision during the outage applies to the pods when the API server is available again.
    cluster
        .kubelet()
        .decide(&namespace, |_: &Pod| Fate::Succeed);
    plane.start_api_server().await?;
    ensure!(plane.url() == url);
    let names = |pods: &[Value]| -> Vec<Value> {
        let names = pods.iter().map(|pod| pod.pointer("/metadata/uid").cloned());
        names.map(Option::unwrap_or_default).collect()
    };
    ensure!(names(&pods.items().await?) == names(&before));
    let is_complete =
        |jobset: &Value| jobset.pointer("/status/terminalState") == Some(&json!("Completed"));
    jobsets.until("long", "it completes", is_complete).await?;
    cluster.still_runs()
}

pub(crate) fn tests() -> Vec<Test<Own<Cluster>>> {
    tests![job_set_completes_across_an_api_server_restart]
}

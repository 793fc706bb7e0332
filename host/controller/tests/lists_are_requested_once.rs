//! A list that plugins look up is requested once for all TrainJobs, heartbeats of nodes trigger no reconcile, and a snapshot keeps
//! the parts of the list that were read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;
use trainyard_model::{call::Call, plugin::Plugin};

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
    plugin::plugin,
};

const NODES: usize = 1_000;
const JOBS: usize = 400;
const NAMESPACES: usize = 20;
/// Longer than changes are gathered.
const GATHERED: Duration = Duration::from_secs(8);

/// A plugin that lists all nodes, reads the zone of ten, and counts how often it is called with an answer.
fn looks(calls: &Arc<AtomicUsize>) -> Arc<dyn Plugin> {
    let calls = calls.clone();
    plugin("looks", &["lookups[v1/Node/*]"], move |call| {
        let lookups = call.context_lookups(Call::CONTEXT)?;
        let nodes = call.lookups_all(lookups, "v1", "Node")?;
        for node in nodes.iter().take(10) {
            call.document_text(*node, "/metadata/labels/zone")?;
        }
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

fn node(number: usize, beat: usize) -> Value {
    let images: Vec<_> = (0..20)
        .map(|image| json!({"names": [format!("example.com/{image}@{beat}")], "sizeBytes": 1}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("node-{number:04}"), "labels": {"zone": format!("zone-{}", number % 3), "other": "label"},
            "managedFields": [{"manager": "kubelet", "time": "2026-01-01T00:00:00Z"}],
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "images": images, "allocatable": {"cpu": beat.to_string()},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": format!("2026-01-01T00:{beat:02}:00Z")}],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_nodes_are_listed_once_for_hundreds_of_queued_train_jobs() {
    let cluster = Cluster::new();
    (0..NODES).for_each(|number| cluster.put(node(number, 0)));
    cluster.put(runtime("looks", &["looks"]));
    for number in 0..JOBS {
        let namespace = format!("team-{}", number % NAMESPACES);
        cluster.put(job(&namespace, &format!("job-{number}"), "looks", true));
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let plugin = looks(&calls);
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| vec![plugin]).await;
    let all = |cluster: &Cluster| cluster.count("jobsets") == JOBS;
    cluster.until("all TrainJobs have a JobSet", all).await;

    // Each may be rendered again once the watch has seen all nodes, which takes as long as the machine lets it.
    let mut made = 0;
    while made != calls.load(Ordering::Relaxed) {
        made = calls.load(Ordering::Relaxed);
        tokio::time::sleep(GATHERED).await;
    }
    // Until the watch that follows has seen all nodes, by one of those that are worked on at once for all of them; then never again.
    let listed = cluster.traffic("list", "nodes");
    let one = cluster.list_bytes("nodes");
    assert!((1..100).contains(&listed.calls), "{listed:?}");
    assert!(listed.bytes < 100 * one, "{listed:?}, of {one} each");

    for map in cluster.all("configmaps") {
        let lookups = map["data"]["lookups"].as_str().unwrap();
        // A thousand zones are too much for it.
        assert!(
            lookups.contains("sha256:") && lookups.len() < 500,
            "{lookups}"
        );
    }

    // Status and heartbeats of all nodes lead to no rendering and no request.
    let reported = cluster.traffic("event", "nodes").bytes;
    (0..NODES).for_each(|number| cluster.put(node(number, 1)));
    let all = |cluster: &Cluster| cluster.traffic("event", "nodes").bytes > reported + one / 2;
    cluster
        .until("the watch is reported of all heartbeats", all)
        .await;
    tokio::time::sleep(GATHERED).await;
    assert_eq!(calls.load(Ordering::Relaxed), made);
    assert_eq!(cluster.traffic("list", "nodes"), listed);

    let snapshot = |cluster: &Cluster| {
        cluster
            .get("configmaps", "team-7", "job-7-runtime-snapshot")
            .unwrap()
    };
    let before = snapshot(&cluster);
    // A label is news for all of them, and the list that is held has it.
    cluster.merge(
        "nodes",
        "",
        "node-0007",
        &json!({"metadata": {"labels": {"zone": "elsewhere"}}}),
    );
    let renewed =
        |cluster: &Cluster| snapshot(cluster)["data"]["lookups"] != before["data"]["lookups"];
    cluster
        .until("the TrainJobs are rendered from it", renewed)
        .await;
    assert_eq!(cluster.traffic("list", "nodes"), listed);
    controller.stop().await;
}

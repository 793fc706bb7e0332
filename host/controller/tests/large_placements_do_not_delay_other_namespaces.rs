//! JobSets with very large pod placements, and their snapshots, do not delay the TrainJobs of another namespace, and still follow their own
//! TrainJobs.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

const TAKEN: &str = "trainyard.dev/taken-placement";
const TOLERATIONS: &str = "/spec/replicatedJobs/0/template/spec/template/spec/tolerations";

/// Comparing each with each would take longer than the test waits.
const MANY: usize = 150_000;

/// The number of threads that run tasks in this test.
const NAMES: [&str; 2] = ["job-1", "job-2"];

fn job_set(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let job_set = cluster.get("jobsets", namespace, name);
    job_set.unwrap_or_default()
}

async fn queued(cluster: &Cluster) -> Controller {
    cluster.put(runtime("plain", &[]));
    for name in NAMES {
        cluster.put(job("hostile", name, "plain", true));
    }
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(cluster, metrics, |_| Vec::new()).await;
    let all = |cluster: &Cluster| cluster.count("jobsets") == NAMES.len();
    cluster.until("both wait", all).await;
    controller
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn train_job_is_created_despite_queued_ones_with_huge_placements() {
    let item = |key: usize| json!({"key": key.to_string()});
    let (live, recorded): (Vec<_>, Vec<_>) =
        (0..MANY).map(|at| (item(at), item(MANY + at))).unzip();
    let recorded = json!({"node": {"/spec/tolerations": recorded}}).to_string();
    let cluster = Cluster::new();
    let controller = queued(&cluster).await;
    for name in NAMES {
        let mut changed = job_set(&cluster, "hostile", name);
        changed["metadata"]["annotations"][TAKEN] = recorded.as_str().into();
        let pods = TOLERATIONS.strip_suffix("/tolerations").unwrap();
        changed.pointer_mut(pods).unwrap()["tolerations"] = live.clone().into();
        cluster.put(changed);
        let labels = json!({"spec": {"labels": {"label": "new"}}});
        cluster.merge("trainjobs", "hostile", name, &labels);
    }
    cluster.put(job("other", "comes", "plain", false));
    let made = |cluster: &Cluster| cluster.get("jobsets", "other", "comes").is_some();
    cluster.until("the other one is made", made).await;
    let follow = |cluster: &Cluster| {
        let job_sets = NAMES.map(|name| job_set(cluster, "hostile", name));
        let labels = job_sets.map(|it| it["metadata"]["labels"]["label"].clone());
        labels.iter().all(|label| label == "new")
    };
    cluster.until("they follow", follow).await;
    // What is recorded until the Jobs are deleted is what an annotation holds, and no more.
    let history = cluster.history().into_iter();
    let followed = history.filter(|((.., name), _, it)| {
        name == NAMES[0] && it["kind"] == "JobSet" && it["metadata"]["labels"]["label"] == "new"
    });
    let recorded = followed.filter_map(|(.., it)| {
        let text = it["metadata"]["annotations"][TAKEN].as_str();
        text.map(str::len)
    });
    let recorded = recorded.max().unwrap();
    assert!(recorded < 256 << 10, "{recorded}");
    controller.stop().await;
}

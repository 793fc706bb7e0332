//! A controller that reconciles counts TrainJobs by state and is the leader, also without leader election.

use std::sync::{Arc, OnceLock};

use serde_json::json;
use trainyard_controller::{metrics::Metrics, queue::Queue};

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();

fn metrics(queue: &Queue) -> Arc<Metrics> {
    let metrics = || Arc::new(Metrics::new(queue));
    METRICS.get_or_init(metrics).clone()
}

fn shows(line: &str) -> bool {
    let text = METRICS.get().unwrap().text().unwrap();
    text.lines().any(|it| it == line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_train_job_is_counted_in_its_state() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "runs", "plain", false));
    cluster.put(job("a", "suspended", "plain", true));
    cluster.put(job("a", "waits", "missing", false));
    let mut refused = job("a", "refused", "plain", false);
    refused["spec"]["trainer"] = json!({"numNodes": "many"});
    cluster.put(refused);
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    for (state, reason) in [
        ("running", ""),
        ("suspended", ""),
        ("waiting", "RuntimeNotFound"),
        ("refused", "InvalidTrainJob"),
    ] {
        let line = format!(r#"trainyard_train_jobs{{state="{state}",reason="{reason}"}} 1"#);
        cluster.until(&line, |_| shows(&line)).await;
    }
    assert!(shows(
        r#"trainyard_train_jobs{state="waiting",reason=""} 0"#
    ));
    assert!(shows("trainyard_leader 1"));
    // Of these, only the first one had no reason to wait.
    let created = "trainyard_job_set_creation_seconds_count 1";
    cluster.until(created, |_| shows(created)).await;
    assert!(shows("trainyard_queue_oldest_seconds 0.0"));
    for kind in [
        "TrainJob",
        "JobSet",
        "TrainingRuntime",
        "ClusterTrainingRuntime",
    ] {
        let text = METRICS.get().unwrap().text().unwrap();
        let series = format!(r#"trainyard_watch_age_seconds{{kind="{kind}"}}"#);
        assert!(text.contains(&series), "{text}");
    }
    cluster.delete("trainjobs", "a", "waits");
    let gone = r#"trainyard_train_jobs{state="waiting",reason="RuntimeNotFound"} 1"#;
    cluster.until("it is gone", |_| !shows(gone)).await;
    controller.stop().await;
    assert!(shows("trainyard_leader 0"));
    // A process that reconciles nothing counts nothing.
    let text = METRICS.get().unwrap().text().unwrap();
    assert!(!text.contains("trainyard_train_jobs"), "{text}");
}

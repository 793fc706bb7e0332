//! If lists of a namespace's Jobs take long, which its Jobs and Events determine, TrainJobs of other namespaces are still created, and resumed
//! with another placement, for which their Jobs are listed. Those whose pods are missing do not wait long for their turn, so that they can be
//! suspended.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
};

/// More than there are workers.
const TRAIN_JOBS: usize = 20;
const NAMESPACES: [&str; 3] = ["a", "b", "c"];

/// Returns a cluster in which the first two lists of Jobs are not answered, and the number of lists that have begun.
fn with_slow_lists() -> (Cluster, Arc<AtomicUsize>) {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    cluster.set_rule(move |_, when, call, _| {
        if call != ("list", "jobs") || when != When::Before {
            return Act::GoOn;
        }
        match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Act::Hang,
            _ => Act::GoOn,
        }
    });
    (cluster, begun)
}

/// The creation of an object whose Jobs should exist by now, so they are listed.
fn created() -> Value {
    let created = Timestamp::now().checked_sub(2.minutes()).unwrap();
    json!({"metadata": {"creationTimestamp": created.to_string()}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_job_that_waits_for_its_turn_is_suspended() {
    let (cluster, begun) = with_slow_lists();
    let controller = Controller::start(
        &cluster,
        |queue| Arc::new(Metrics::new(queue)),
        |_| Vec::new(),
    )
    .await;
    for namespace in NAMESPACES {
        cluster.put(job(namespace, "job", "plain", false));
        let has_job_set = |cluster: &Cluster| cluster.get("jobsets", namespace, "job").is_some();
        cluster.until("it has a JobSet", has_job_set).await;
    }
    let age = |namespace| {
        for resource in ["trainjobs", "jobsets"] {
            cluster.merge(resource, namespace, "job", &created());
        }
    };
    let [slow @ .., waiting] = NAMESPACES;
    slow.into_iter().for_each(age);
    let both = |_: &Cluster| begun.load(Ordering::Relaxed) == 2;
    cluster.until("two lists have begun", both).await;
    // Only now, because its own list must not be one of the two.
    age(waiting);
    let suspend = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", waiting, "job", &suspend);
    let is_suspended = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", waiting, "job");
        job_set.is_some_and(|found| found["spec"]["suspend"] == true)
    };
    cluster.until("it is suspended", is_suspended).await;
    assert_eq!(
        begun.load(Ordering::Relaxed),
        2,
        "the lists were still read"
    );
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_holds_no_worker() {
    let (cluster, begun) = with_slow_lists();
    let created = created();
    let names = || (0..TRAIN_JOBS).map(|number| format!("job-{number}"));
    for namespace in NAMESPACES {
        for name in names() {
            cluster.put(job(namespace, &name, "plain", false));
            cluster.merge("trainjobs", namespace, &name, &created);
        }
    }
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| Vec::new()).await;
    let all = NAMESPACES.len() * TRAIN_JOBS;
    cluster
        .until("all have a JobSet", |cluster| {
            cluster.count("jobsets") == all
        })
        .await;
    for namespace in NAMESPACES {
        for name in names() {
            cluster.merge("jobsets", namespace, &name, &created);
        }
    }
    cluster
        .until("two lists have begun", |_| {
            begun.load(Ordering::Relaxed) == 2
        })
        .await;
    cluster.put(job("other", "job", "plain", false));
    cluster
        .until("the TrainJob of `other` has a JobSet", |cluster| {
            cluster.get("jobsets", "other", "job").is_some()
        })
        .await;
    assert_eq!(begun.load(Ordering::Relaxed), 2);
    // It is moved to other nodes while it is suspended, so its Jobs are listed before it runs again.
    let is_suspended = |suspended: bool| {
        move |cluster: &Cluster| {
            let job_set = cluster.get("jobsets", "other", "moves");
            job_set.is_some_and(|found| found["spec"]["suspend"] == suspended)
        }
    };
    let mut moves = job("other", "moves", "plain", false);
    moves["spec"]["runtimePatches"] = json!([placed("a")]);
    cluster.put(moves);
    cluster.until("it runs", is_suspended(false)).await;
    let suspend = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", "other", "moves", &suspend);
    cluster.until("it is suspended", is_suspended(true)).await;
    let resume = json!({"spec": {"suspend": false, "runtimePatches": [placed("b")]}});
    cluster.merge("trainjobs", "other", "moves", &resume);
    cluster.until("it runs again", is_suspended(false)).await;
    assert!(begun.load(Ordering::Relaxed) > 2);
    controller.stop().await;
}

/// A patch that places the nodes by a label. What JobSet would leave in their Jobs is a label that is no longer selected.
fn placed(label: &str) -> Value {
    let pods = json!({"nodeSelector": {label: "true"}});
    let node = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
    let spec = json!({"template": {"spec": {"replicatedJobs": [node]}}});
    json!({"manager": "example.com/queue", "trainingRuntimeSpec": spec})
}

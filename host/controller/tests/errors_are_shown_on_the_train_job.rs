//! A TrainJob that cannot be reconciled has an annotation with the reason until it is reconciled, and nothing is written in between. Nothing is rendered
//! from the annotation.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::metrics::Metrics;
use trainyard_model::call::Call;

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
    plugin::plugin,
    train_job::{error, messages},
};

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "a", "job").unwrap()
}

async fn start(cluster: &Cluster) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    Controller::start(cluster, metrics, |_| Vec::new()).await
}

/// How often TrainJobs were patched, their status included.
fn patches(cluster: &Cluster) -> u64 {
    cluster.traffic("patch", "trainjobs").calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reason_is_there_while_the_runtime_is_missing() {
    let cluster = Cluster::new();
    let mut waits = job("a", "job", "plain", false);
    waits["metadata"]["annotations"] = json!({"example.com/ticket": "42"});
    cluster.put(waits);
    let controller = start(&cluster).await;
    let wanted = "RuntimeNotFound: spec.runtimeRef.name: there is no ClusterTrainingRuntime `plain`; create it, or recreate the TrainJob with another `spec.runtimeRef`";
    cluster
        .until("the reason is written", |cluster| error(cluster) == wanted)
        .await;
    let annotated = train_job(&cluster);
    assert_eq!(
        annotated["metadata"]["annotations"]["example.com/ticket"],
        "42"
    );
    assert_eq!(annotated["spec"], job("a", "job", "plain", false)["spec"]);
    // The watch shows the annotation, and two retries follow: neither writes anything.
    let (written, events) = (patches(&cluster), cluster.traffic("patch", "events").calls);
    cluster
        .until("it is retried twice", |cluster| {
            cluster.traffic("patch", "events").calls >= events + 2
        })
        .await;
    assert_eq!(patches(&cluster), written);
    assert_eq!(train_job(&cluster), annotated);

    cluster.put(runtime("plain", &[]));
    let is_reconciled =
        |cluster: &Cluster| cluster.count("jobsets") == 1 && error(cluster).is_null();
    cluster
        .until("it is reconciled and the reason is removed", is_reconciled)
        .await;
    let job_set = cluster.get("jobsets", "a", "job").unwrap();
    assert!(!job_set.to_string().contains(ERROR_ANNOTATION), "{job_set}");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_object_that_a_plugin_looks_up_is_named_until_it_exists() {
    let needs = plugin("needs", &["lookups[v1/Node/gpu]"], |call| {
        let lookups = call.context_lookups(Call::CONTEXT)?;
        Ok(call.lookups_get(lookups, "v1", "Node", "gpu").map(drop)?)
    });
    let cluster = Cluster::new();
    cluster.put(runtime("needs", &["needs"]));
    cluster.put(job("a", "job", "needs", false));
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| vec![needs]).await;
    let why = "plugin needs 1.0.0 (native) in transform needs Node `gpu` (v1) for namespace `a`, but this object does not exist; create it, and the TrainJob continues";
    cluster
        .until("the reason is written", |cluster| {
            error(cluster) == format!("ObjectNotFound: {why}") && messages(cluster).contains(why)
        })
        .await;
    cluster.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu"}}));
    let is_reconciled =
        |cluster: &Cluster| cluster.count("jobsets") == 1 && error(cluster).is_null();
    cluster.until("it is reconciled", is_reconciled).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_set_is_not_rendered_again_for_the_annotation() {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(job("a", "job", "plain", true));
    let controller = start(&cluster).await;
    let is_suspended = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap_or_default();
        let conditions = &train_job(cluster)["status"]["conditions"];
        job_set["spec"]["suspend"] == true && conditions[0]["status"] == "True"
    };
    cluster.until("it is suspended", is_suspended).await;
    let (job_set, snapshot) = (cluster.all("jobsets"), cluster.all("configmaps"));
    let applied = cluster.traffic("patch", "jobsets").calls;
    let annotation =
        json!({"metadata": {"annotations": {ERROR_ANNOTATION: "Other: of another version"}}});
    cluster.merge("trainjobs", "a", "job", &annotation);
    cluster
        .until("it is removed", |cluster| error(cluster).is_null())
        .await;
    assert_eq!(cluster.traffic("patch", "jobsets").calls, applied);
    assert_eq!(cluster.all("jobsets"), job_set);
    assert_eq!(cluster.all("configmaps"), snapshot);
    controller.stop().await;
}

/// A cluster whose role is of an earlier release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_without_permission_to_annotate_still_reconciles() {
    let cluster = Cluster::new();
    cluster.put(job("a", "job", "plain", false));
    cluster.set_rule(|_, when, (verb, plural), body| {
        let annotates = (verb, plural) == ("patch", "trainjobs") && body.get("status").is_none();
        match when {
            When::Before if annotates => Act::Quote,
            _ => Act::GoOn,
        }
    });
    let controller = start(&cluster).await;
    let event = |cluster: &Cluster| {
        let events = cluster.all("events");
        events.first().map(|event| event["message"].to_string())
    };
    cluster
        .until("an Event says it", |cluster| event(cluster).is_some())
        .await;
    let asked = patches(&cluster);
    let events = cluster.traffic("patch", "events").calls;
    cluster
        .until("it is retried twice", |cluster| {
            cluster.traffic("patch", "events").calls >= events + 2
        })
        .await;
    // What was refused once is not tried at each retry.
    assert_eq!(patches(&cluster), asked);
    assert!(
        event(&cluster)
            .unwrap()
            .contains("there is no ClusterTrainingRuntime `plain`")
    );
    assert!(error(&cluster).is_null());
    cluster.put(runtime("plain", &[]));
    let is_reconciled = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("it is reconciled", is_reconciled).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(cluster.count("events"), 1);
    controller.stop().await;
}

/// Another writer of the annotation, such as a second controller without leader election.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_text_is_neither_reconciled_nor_replaced_at_once() {
    let cluster = Cluster::new();
    cluster.put(job("a", "job", "plain", false));
    let controller = start(&cluster).await;
    cluster
        .until("the reason is written", |cluster| !error(cluster).is_null())
        .await;
    let events = |cluster: &Cluster| cluster.traffic("patch", "events").calls;
    let is_retried = |count: u64| {
        let before = events(&cluster);
        move |cluster: &Cluster| events(cluster) >= before + count
    };
    cluster.until("it is retried", is_retried(1)).await;
    let (written, before) = (patches(&cluster), events(&cluster));
    for number in 0..50 {
        let text = format!("Other: {number}");
        let annotation = json!({"metadata": {"annotations": {ERROR_ANNOTATION: text}}});
        cluster.merge("trainjobs", "a", "job", &annotation);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Without backoff, each of them would have been a reconcile with an Event.
    assert!(events(&cluster) < before + 10);
    cluster.until("it is retried", is_retried(1)).await;
    assert_eq!(patches(&cluster), written);
    assert_eq!(error(&cluster), "Other: 49");

    cluster.put(runtime("plain", &[]));
    let is_reconciled =
        |cluster: &Cluster| cluster.count("jobsets") == 1 && error(cluster).is_null();
    cluster
        .until("it is reconciled and the reason is removed", is_reconciled)
        .await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_runtimes_are_errors_until_they_shrink() {
    let cluster = Cluster::new();
    let mut large = runtime("plain", &[]);
    let node = &mut large["spec"]["template"]["spec"]["replicatedJobs"][0]["template"];
    node["spec"]["template"]["spec"]["containers"][0]["args"] = json!(vec![""; 450_000]);
    cluster.put(large);
    cluster.put(job("a", "job", "plain", true));
    let controller = start(&cluster).await;
    let says = |cluster: &Cluster| {
        let events = cluster.all("events");
        events.iter().any(|event| {
            let message = event["message"].as_str().unwrap();
            message.contains("plain: has 13") && message.contains("but at most 1048576 fit in")
        })
    };
    cluster.until("an Event says why", says).await;
    let is_annotated = |cluster: &Cluster| {
        error(cluster)
            .as_str()
            .is_some_and(|it| it.contains("plain"))
    };
    cluster.until("so does the annotation", is_annotated).await;
    cluster.put(runtime("plain", &[]));
    let is_reconciled =
        |cluster: &Cluster| cluster.count("jobsets") == 1 && error(cluster).is_null();
    cluster.until("it is reconciled", is_reconciled).await;
    controller.stop().await;
}

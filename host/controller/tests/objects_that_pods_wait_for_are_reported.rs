//! While pods of a running TrainJob wait, an object that a plugin emitted says why: in the TrainJob's annotation, an Event and the metric.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Plugin,
};

use crate::stub::{
    cluster::Cluster,
    plugin::builder,
    train_job::{child, counted, error, messages, start_for_old_train_job},
};

const API_VERSION: &str = "scheduling.x-k8s.io/v1alpha1";

/// A plugin that emits a PodGroup, and reports two of its states.
fn gang() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let group = call.objects_emit(objects, API_VERSION, "PodGroup", "", None)?;
        call.object_report_while(group, "phase/Pending", "the gang waits for its turn")?;
        let unschedulable = "condition/Unschedulable/True";
        call.object_report_while(group, unschedulable, "the gang does not fit")?;
        call.object_set_body(group, r#"{"spec":{"minMember":2}}"#)
    }
    let claim = format!("objects[{API_VERSION}/PodGroup/]");
    builder("gang", &[&claim], |call| Ok(emit(call)?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_objects_are_reported_until_the_pods_run() {
    let cluster = Cluster::new();
    let (controller, metrics) = start_for_old_train_job(&cluster, vec![gang()]).await;
    let waiting = || counted(&metrics, "waiting", "ObjectWaits");

    let job_set = cluster.get("jobsets", "a", "job").unwrap();
    cluster.put(child(&job_set, 1, 1));
    let status = |status: Value| json!({ "status": status });
    let pods = |ready: u8| {
        status(json!({"replicatedJobsStatus": [{"name": "node", "active": 1, "ready": ready}]}))
    };
    cluster.merge(
        "podgroups",
        "a",
        "job",
        &status(json!({"phase": "Pending"})),
    );
    cluster.merge("jobsets", "a", "job", &pods(0));
    cluster
        .until("the phase is reported", |cluster| {
            error(cluster) == "ObjectWaits: PodGroup `job`: the gang waits for its turn"
                && messages(cluster).contains("PodGroup `job`: the gang waits for its turn")
                && waiting() == 1
        })
        .await;

    let condition = json!({"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable"});
    let unschedulable = status(json!({"phase": "Pending", "conditions": [condition]}));
    cluster.merge("podgroups", "a", "job", &unschedulable);
    // Any change of the JobSet has it checked at once, and otherwise it is checked from time to time.
    cluster.merge(
        "jobsets",
        "a",
        "job",
        &json!({"metadata": {"labels": {"touched": "1"}}}),
    );
    let text = "the gang does not fit: 2/2 tasks in gang unschedulable";
    cluster
        .until("the condition is reported", |cluster| {
            messages(cluster).contains(text)
        })
        .await;

    cluster.merge("jobsets", "a", "job", &pods(1));
    cluster
        .until("nothing is wrong any more", |cluster| {
            error(cluster).is_null() && waiting() == 0 && counted(&metrics, "running", "") == 1
        })
        .await;
    controller.stop().await;
}

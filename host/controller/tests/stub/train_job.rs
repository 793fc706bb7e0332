//! The TrainJob `a/job` of a controller in this process: what the controller and others write about it.

use std::sync::Arc;

use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use trainyard_api::names::ERROR_ANNOTATION;
use trainyard_controller::metrics::Metrics;
use trainyard_model::plugin::Plugin;

use super::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

/// Starts a controller with these plugins for a TrainJob that was created two minutes ago, and waits for its JobSet. Also returns the
/// controller's metrics.
pub(crate) async fn start_for_old_train_job(
    cluster: &Cluster,
    plugins: Vec<Arc<dyn Plugin>>,
) -> (Controller, Arc<Metrics>) {
    let names: Vec<_> = plugins
        .iter()
        .map(|plugin| plugin.info().id.name.clone())
        .collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    cluster.put(runtime("runtime", &names));
    let created = Timestamp::now().checked_sub(2.minutes()).unwrap();
    let mut job = job("a", "job", "runtime", false);
    job["metadata"]["creationTimestamp"] = created.to_string().into();
    cluster.put(job);
    let mut kept = None;
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let plugins = |metrics: &_| {
        kept = Some(Arc::clone(metrics));
        plugins
    };
    let controller = Controller::start(cluster, metrics, plugins).await;
    let is_created = |cluster: &Cluster| cluster.count("jobsets") == 1;
    cluster.until("there is a JobSet", is_created).await;
    // Until now, its Jobs could have been about to be created.
    assert!(error(cluster).is_null());
    let created = json!({"metadata": {"creationTimestamp": created.to_string()}});
    cluster.merge("jobsets", "a", "job", &created);
    (controller, kept.unwrap())
}

/// Returns the annotation about the TrainJob's error; null without one.
pub(crate) fn error(cluster: &Cluster) -> Value {
    let job = cluster.get("trainjobs", "a", "job").unwrap();
    job["metadata"]["annotations"][ERROR_ANNOTATION].clone()
}

/// Returns the messages of the TrainJob's Events.
pub(crate) fn messages(cluster: &Cluster) -> String {
    let events = cluster.all("events").into_iter();
    let events = events.filter(|event| event["involvedObject"]["kind"] == "TrainJob");
    let messages = events.map(|event| event["message"].to_string());
    messages.collect::<Vec<_>>().join("\n")
}

/// Returns how many TrainJobs the metric counts with this state and reason. It has no series with a reason that no TrainJob has.
pub(crate) fn counted(metrics: &Metrics, state: &str, reason: &str) -> u64 {
    let series = format!("trainyard_train_jobs{{state=\"{state}\",reason=\"{reason}\"}} ");
    let text = metrics.text().unwrap();
    let mut counts = text.lines().filter_map(|line| line.strip_prefix(&series));
    counts.next().map_or(0, |count| count.parse().unwrap())
}

/// The JobSet's Job with its pods, of which some are active.
pub(crate) fn child(job_set: &Value, pods: u8, active: u8) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "job-node-0", "namespace": "a", "uid": "child",
            "ownerReferences": [{
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "job", "controller": true,
                "uid": job_set["metadata"]["uid"],
            }],
        },
        "spec": {"parallelism": pods, "completions": pods}, "status": {"active": active},
    })
}

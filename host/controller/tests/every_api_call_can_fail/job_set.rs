//! The JobSet controller and the garbage collector of the cluster, and JobSet's admission webhook.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use crate::stub::cluster::Cluster;

/// How long both take to notice a change.
const LATENCY: Duration = Duration::from_millis(200);

/// What was seen of pods that breaks a guarantee.
pub(super) type Broken = Arc<Mutex<Vec<String>>>;

/// The list at that path of an object.
pub(super) fn list<'v>(object: &'v Value, path: &str) -> impl Iterator<Item = &'v Value> {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The text at that path of an object.
pub(super) fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether an object has a condition of that type that is true.
pub(super) fn is(object: &Value, kind: &str) -> bool {
    list(object, "/status/conditions").any(|it| it["type"] == kind && it["status"] == "True")
}

/// Whether a JobSet is suspended.
pub(super) fn is_suspended(job_set: &Value) -> bool {
    job_set["spec"]["suspend"] == true
}

/// Returns the UID of the object that controls another.
pub(super) fn owner(object: &Value) -> &str {
    text(object, "/metadata/ownerReferences/0/uid")
}

/// Acts on every change, until it is dropped.
pub(super) async fn run(cluster: Cluster, broken: Broken) {
    loop {
        cluster.changes().await;
        tokio::time::sleep(LATENCY).await;
        collect(&cluster);
        for job_set in cluster.all("jobsets") {
            act(&cluster, &job_set, &broken);
        }
    }
}

/// Deletes objects whose owners are gone.
fn collect(cluster: &Cluster) {
    for plural in [
        "jobsets",
        "configmaps",
        "secrets",
        "podgroups",
        "resourceclaimtemplates",
        "jobs",
    ] {
        let owners = if plural == "jobs" {
            "jobsets"
        } else {
            "trainjobs"
        };
        let owners: Vec<_> = cluster.all(owners);
        for object in cluster.all(plural) {
            let owner = owner(&object);
            let is_owned = owners.iter().any(|it| it["metadata"]["uid"] == owner);
            if !owner.is_empty() && !is_owned {
                let metadata = |key: &str| object["metadata"][key].as_str().unwrap();
                cluster.delete(plural, metadata("namespace"), metadata("name"));
            }
        }
    }
}

/// Creates, suspends and resumes the Jobs of a JobSet, and counts them.
fn act(cluster: &Cluster, job_set: &Value, broken: &Broken) {
    if is(job_set, "Completed") || is(job_set, "Failed") {
        return;
    }
    let (namespace, name) = (
        text(job_set, "/metadata/namespace"),
        text(job_set, "/metadata/name"),
    );
    let mut counts: Vec<Value> = Vec::new();
    for replicated in list(job_set, "/spec/replicatedJobs") {
        let needed = list(replicated, "/dependsOn");
        let is_ready = |needed: &Value| {
            let key = if needed["status"] == "Complete" {
                "succeeded"
            } else {
                "ready"
            };
            counts
                .iter()
                .any(|it| it["name"] == needed["name"] && it[key] == 1)
        };
        let job = format!("{name}-{}-0", text(replicated, "/name"));
        let exists = cluster.get("jobs", namespace, &job).is_some();
        if exists || needed.into_iter().all(is_ready) {
            run_job(cluster, (namespace, &job), job_set, replicated, broken);
        }
        counts.push(count(cluster, namespace, name, replicated));
    }
    if job_set["status"]["replicatedJobsStatus"] != json!(counts) {
        let status = json!({"status": {"replicatedJobsStatus": counts}});
        cluster.merge("jobsets", namespace, name, &status);
    }
}

/// Creates or changes a Job. JobSet adds the placement of a replicated job to its Jobs, and removes nothing.
fn run_job(
    cluster: &Cluster,
    (namespace, name): (&str, &str),
    job_set: &Value,
    replicated: &Value,
    broken: &Broken,
) {
    let suspend = is_suspended(job_set);
    let pods = &replicated["template"]["spec"]["template"];
    let Some(found) = cluster.get("jobs", namespace, name) else {
        let labels = json!({
            "jobset.sigs.k8s.io/jobset-name": job_set["metadata"]["name"],
            "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
        });
        let owner = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "controller": true,
            "name": job_set["metadata"]["name"], "uid": job_set["metadata"]["uid"],
        });
        cluster.put(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"namespace": namespace, "name": name, "labels": labels, "ownerReferences": [owner]},
            "spec": {"suspend": suspend, "parallelism": 1, "template": pods},
        }));
        return;
    };
    if owner(&found) != job_set["metadata"]["uid"] || is(&found, "Complete") {
        return;
    }
    let mut job = found.clone();
    if !suspend && found["spec"]["suspend"] == true {
        let selector = pods["spec"]["nodeSelector"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let spec = &mut job["spec"]["template"]["spec"];
        for (key, value) in selector {
            spec["nodeSelector"][key] = value;
        }
        if spec["nodeSelector"] != pods["spec"]["nodeSelector"] {
            let now = &spec["nodeSelector"];
            broken
                .lock()
                .unwrap()
                .push(format!("pods have an earlier placement: {now}"));
        }
    }
    job["spec"]["suspend"] = suspend.into();
    // An initializer ends after a while.
    if !suspend && found["spec"]["suspend"] == false && name.contains("initializer") {
        job["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    }
    if job != found {
        cluster.put(job);
    }
}

/// Returns the counts of a replicated job.
fn count(cluster: &Cluster, namespace: &str, name: &str, replicated: &Value) -> Value {
    let job = format!("{name}-{}-0", text(replicated, "/name"));
    let job = cluster.get("jobs", namespace, &job).unwrap_or_default();
    let has_ended = is(&job, "Complete");
    let runs = i32::from(!has_ended && job["spec"]["suspend"] == false);
    let waits = i32::from(!has_ended && job["spec"]["suspend"] == true);
    json!({
        "name": replicated["name"], "succeeded": i32::from(has_ended), "failed": 0,
        "active": runs, "ready": runs, "suspended": waits,
    })
}

/// Ends a JobSet.
pub(super) fn complete(cluster: &Cluster) {
    cluster.edit("jobsets", ("a", "job"), |job_set| {
        job_set["status"]["conditions"] = json!([{
            "type": "Completed", "status": "True", "reason": "AllJobsCompleted",
            "message": "jobset completed successfully", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        for counts in job_set["status"]["replicatedJobsStatus"].as_array_mut().unwrap() {
            (counts["active"], counts["ready"], counts["succeeded"]) = (json!(0), json!(0), json!(1));
        }
    });
}

/// Refuses changes of a JobSet that JobSet's webhook refuses.
pub(super) fn admission(before: &Value, after: &Value) -> Option<Value> {
    if before["kind"] != "JobSet" {
        return None;
    }
    let fixed = |job_set: &Value| {
        let mut spec = job_set["spec"].clone();
        spec["suspend"].take();
        for replicated in spec["replicatedJobs"].as_array_mut().into_iter().flatten() {
            let pods = &mut replicated["template"]["spec"]["template"];
            if is_suspended(before) {
                for path in [
                    "/metadata",
                    "/spec/nodeSelector",
                    "/spec/tolerations",
                    "/spec/schedulingGates",
                ] {
                    pods.pointer_mut(path).map(Value::take);
                }
            }
        }
        without_nulls(spec)
    };
    if fixed(before) == fixed(after) {
        return None;
    }
    let cause = json!({
        "reason": "FieldValueInvalid", "field": "spec.replicatedJobs",
        "message": "Invalid value: field is immutable",
    });
    Some(json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "JobSet.jobset.x-k8s.io \"job\" is invalid: field is immutable",
        "details": {"group": "jobset.x-k8s.io", "kind": "JobSet", "causes": [cause]},
    }))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            members
                .map(|(key, value)| (key, without_nulls(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

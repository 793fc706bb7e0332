//! Reads the status of a TrainJob.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::Namespace;

/// Returns the type, status and reason of each condition.
pub(crate) fn conditions(job: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten();
    conditions
        .map(|c| [text(&c["type"]), text(&c["status"]), text(&c["reason"])])
        .collect()
}

pub(crate) fn is(job: &Value, kind: &str, status: &str) -> bool {
    conditions(job)
        .iter()
        .any(|c| c[0] == kind && c[1] == status)
}

/// Returns the counts of each replicated job, by name.
pub(crate) fn counts(job: &Value) -> BTreeMap<String, &Value> {
    let jobs = job["status"]["jobsStatus"].as_array();
    let jobs = jobs.into_iter().flatten();
    jobs.map(|job| (job["name"].to_string(), job)).collect()
}

pub(crate) fn is_running(job: &Value) -> bool {
    let counts = counts(job);
    let runs = |job: &Value| job["ready"] == 1;
    counts
        .values()
        .all(|job| runs(job) || job["succeeded"] == 1)
        && counts.values().any(|job| runs(job))
}

pub(crate) fn is_suspended(job: &Value) -> bool {
    let suspended = |job: &Value| job["suspended"] == 1 && job["active"] == 0;
    let counts = counts(job);
    let mut all = counts.values();
    is(job, "Suspended", "True")
        && all.all(|job| suspended(job) || job["succeeded"] == 1)
        && !counts.is_empty()
}

/// Returns the type, status, reason and message of each condition.
pub(crate) fn described_conditions(job: &Value) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let fields = ["type", "status", "reason", "message"];
    let all = conditions.into_iter().flatten();
    all.map(|one| fields.map(|field| text(&one[field])))
        .collect()
}

/// The conditions that the reference sets on a TrainJob.
pub(crate) const SUSPENDED: [&str; 4] = ["Suspended", "True", "Suspended", "TrainJob is suspended"];
pub(crate) const RESUMED: [&str; 4] = ["Suspended", "False", "Resumed", "TrainJob is resumed"];
pub(crate) const OVERDUE: [&str; 4] = [
    "Failed",
    "True",
    "DeadlineExceeded",
    "TrainJob exceeded its active deadline",
];

/// Returns the status of a replicated job with one Job, with 1 in each field in which the Job counts.
fn counts_of_node(counted: &[&str]) -> Value {
    let mut node = json!({"name": "node"});
    for count in ["active", "failed", "ready", "succeeded", "suspended"] {
        node[count] = json!(u8::from(counted.contains(&count)));
    }
    node
}

/// Waits until the TrainJob's only replicated job counts in exactly these fields of the status.
pub(crate) async fn until_counted(
    namespace: &Namespace<'_>,
    name: &str,
    counted: &[&str],
) -> Result<Value> {
    let expected = json!([counts_of_node(counted)]);
    let counts = |job: &Value| {
        let mut found = job["status"]["jobsStatus"].clone();
        for one in found.as_array_mut().into_iter().flatten() {
            for (count, value) in one.as_object_mut().into_iter().flatten() {
                if count != "name" && value.is_null() {
                    *value = json!(0);
                }
            }
        }
        found == expected
    };
    let what = format!("it counts {counted:?}");
    namespace.until(name, &what, counts).await
}

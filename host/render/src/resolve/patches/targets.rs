//! What a patch is for: replicated jobs and containers that the runtime has (W53).

use serde_json::Value;
use trainyard_api::FieldPath;

/// A patch without what finds nothing.
pub(super) struct Found {
    /// The patch, with the replicated jobs and containers that there are.
    pub(super) patch: Value,
    /// The names that nothing has, each with what there is.
    pub(super) missing: Vec<(FieldPath, String)>,
}

/// The lists of containers, with what an item of each is called.
const CONTAINERS: [(&str, &str); 2] = [
    ("initContainers", "init container"),
    ("containers", "container"),
];

/// The pod spec of a replicated job.
const POD_SPEC: &str = "/template/spec/template/spec";

/// Looks up each name of a patch in the template.
pub(super) fn find(template: &Value, patch: &Value, at: &FieldPath) -> Found {
    let mut found = Found {
        patch: patch.clone(),
        missing: Vec::new(),
    };
    let Some(Value::Array(jobs)) = found.patch.get_mut("replicatedJobs") else {
        return found;
    };
    let at = at.field("replicatedJobs");
    let mut kept = Vec::with_capacity(jobs.len());
    for (position, mut job) in std::mem::take(jobs).into_iter().enumerate() {
        let at = at.index(position);
        let all = template.get("replicatedJobs");
        match item(all, name(&job)) {
            Some(old) => {
                found.missing.extend(containers(old, &mut job, &at));
                kept.push(job);
            }
            None => {
                let message = format!(
                    "the runtime has no replicated job `{}`; it has {}",
                    name(&job),
                    names(all)
                );
                found.missing.push((at.field("name"), message));
            }
        }
    }
    *jobs = kept;
    found
}

/// Takes the containers out of a patch that the replicated job does not have.
fn containers(old: &Value, job: &mut Value, at: &FieldPath) -> Vec<(FieldPath, String)> {
    let mut missing = Vec::new();
    let set = name(old).to_owned();
    for (list, called) in CONTAINERS {
        let Some(Value::Array(patched)) = job.pointer_mut(&format!("{POD_SPEC}/{list}")) else {
            continue;
        };
        let all = old.pointer(&format!("{POD_SPEC}/{list}"));
        let at = at.fields(["template", "spec", "template", "spec", list]);
        for (position, container) in patched.iter().enumerate() {
            if item(all, name(container)).is_none() {
                let message = format!(
                    "the runtime's replicated job `{set}` has no {called} `{}`; it has {}",
                    name(container),
                    names(all)
                );
                missing.push((at.index(position).field("name"), message));
            }
        }
        patched.retain(|container| item(all, name(container)).is_some());
    }
    missing
}

fn item<'v>(list: Option<&'v Value>, wanted: &str) -> Option<&'v Value> {
    list?.as_array()?.iter().find(|item| name(item) == wanted)
}

fn name(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn names(list: Option<&Value>) -> String {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&str> = items.map(name).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

//! Finds the replicated jobs and containers of the runtime that a patch names (W53).

use std::{collections::HashMap, fmt};

use crate::json::get;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::text::listed;

/// A patch reduced to targets that exist.
pub(super) struct Found {
    /// The patch with existing replicated jobs and containers only.
    pub(super) patch: Value,
    /// The names that do not exist, each with a message that lists existing ones.
    pub(super) missing: Vec<(FieldPath, String)>,
}

/// The lists of containers, with the noun for an item.
const CONTAINERS: [(&str, &str); 2] = [
    ("initContainers", "init container"),
    ("containers", "container"),
];

/// The path of the pod spec in a replicated job.
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
    let all = Items::of(get(template, "replicatedJobs"));
    for (position, mut job) in std::mem::take(jobs).into_iter().enumerate() {
        let at = at.index(position);
        match all.get(name(&job)) {
            Some(old) => {
                found.missing.extend(containers(old, &mut job, &at));
                kept.push(job);
            }
            None => {
                let message = format!(
                    "the runtime has no replicated job `{}`; it has {all}",
                    name(&job)
                );
                found.missing.push((at.field("name"), message));
            }
        }
    }
    *jobs = kept;
    found
}

/// Removes the containers from a patch that the replicated job does not have.
fn containers(old: &Value, job: &mut Value, at: &FieldPath) -> Vec<(FieldPath, String)> {
    let mut missing = Vec::new();
    let set = name(old).to_owned();
    for (list, called) in CONTAINERS {
        let Some(Value::Array(patched)) = job.pointer_mut(&format!("{POD_SPEC}/{list}")) else {
            continue;
        };
        let all = Items::of(old.pointer(&format!("{POD_SPEC}/{list}")));
        let at = at.fields(["template", "spec", "template", "spec", list]);
        for (position, container) in patched.iter().enumerate() {
            if all.get(name(container)).is_none() {
                let message = format!(
                    "the runtime's replicated job `{set}` has no {called} `{}`; it has {all}",
                    name(container)
                );
                missing.push((at.index(position).field("name"), message));
            }
        }
        patched.retain(|container| all.get(name(container)).is_some());
    }
    missing
}

fn name(item: &Value) -> &str {
    get(item, "name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The items of a list of the template, by name.
struct Items<'v> {
    items: &'v [Value],
    named: HashMap<&'v str, &'v Value>,
}

impl<'v> Items<'v> {
    fn of(list: Option<&'v Value>) -> Self {
        let items = list.and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default();
        let mut named = HashMap::with_capacity(items.len());
        for item in items {
            named.entry(name(item)).or_insert(item);
        }
        Self { items, named }
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        self.named.get(name).copied()
    }
}

impl fmt::Display for Items<'_> {
    /// Writes the names up to a maximum number, because the template may have many and the patch may miss as many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 20;
        if self.items.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&listed(self.items.iter().map(name), MOST))
    }
}

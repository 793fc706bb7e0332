//! The placement of a JobSet's pods, which is all that may change in a JobSet that has run.

mod entries;
mod field;

use std::collections::HashMap;

pub(crate) use entries::{Entries, Index};
use field::Field;
use serde_json::{Map, Value};
use trainyard_api::{TrainJob, merge};
use trainyard_model::deadline::{Deadline, Overdue};

/// The pointer to the pod template of a replicated job.
const PODS: &str = "/template/spec/template";

/// Returns the fields of a pod template that place pods.
pub(crate) fn of(pods: &Value) -> Value {
    let mut of = Value::Object(Map::new());
    for field in Field::ALL {
        put(&mut of, field, pods.pointer(field.pointer()).cloned());
    }
    of
}

/// Returns the live spec's replicated jobs with the placement of the wanted spec; `None` if they already have it.
pub(crate) fn placed(live: &Value, wanted: &Value) -> Option<Value> {
    let mut jobs = live.get("replicatedJobs")?.clone();
    let before = jobs.clone();
    let wanted = pods_by_name(wanted);
    for job in jobs.as_array_mut()? {
        let name = job.get("name").and_then(Value::as_str);
        let Some(wanted) = name.and_then(|name| wanted.get(name).copied().flatten()) else {
            continue;
        };
        let Some(pods) = job.pointer_mut(PODS) else {
            continue;
        };
        for field in Field::ALL {
            put(pods, field, wanted.pointer(field.pointer()).cloned());
        }
    }
    (jobs != before).then_some(jobs)
}

/// Returns a spec with the TrainJob's own patches, except for those that cannot be merged.
///
/// # Errors
/// The deadline was exceeded.
pub(crate) fn patched(job: &TrainJob, spec: &Value, deadline: &Deadline) -> Result<Value, Overdue> {
    let mut patches = job.runtime_patches.iter();
    patches.try_fold(spec.clone(), |spec, patch| {
        deadline.check()?;
        let patch = patch.spec.as_ref();
        let merged = patch.and_then(|patch| merge::strategic(&spec, patch).ok());
        Ok(merged.unwrap_or(spec))
    })
}

/// Returns the pod templates of a spec's replicated jobs by name; `None` for one without a template.
fn pods_by_name(spec: &Value) -> HashMap<&str, Option<&Value>> {
    let jobs = spec.get("replicatedJobs").and_then(Value::as_array);
    // In reverse, so that the first of a name is kept.
    jobs.into_iter()
        .flatten()
        .rev()
        .filter_map(named_pods)
        .collect()
}

fn named_pods(job: &Value) -> Option<(&str, Option<&Value>)> {
    Some((job.get("name")?.as_str()?, job.pointer(PODS)))
}

/// Sets or removes a field two levels down. An empty value counts as absent.
fn put(pods: &mut Value, field: Field, wanted: Option<Value>) {
    let mut names = field.pointer().split('/').skip(1);
    let (Some(parent), Some(name), Some(pods)) = (names.next(), names.next(), pods.as_object_mut())
    else {
        return;
    };
    let wanted = wanted.filter(|value| !is_empty(value));
    let parent = match wanted {
        Some(_) => Some(
            pods.entry(parent)
                .or_insert_with(|| Value::Object(Map::new())),
        ),
        None => pods.get_mut(parent),
    };
    let Some(parent) = parent.and_then(Value::as_object_mut) else {
        return;
    };
    match wanted {
        Some(value) => {
            parent.insert(name.to_owned(), value);
        }
        None if parent.get(name).is_some_and(|held| !is_empty(held)) => {
            parent.shift_remove(name);
        }
        None => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn spec(pods: &Value) -> Value {
        json!({"replicatedJobs": [
            {"name": "other", "template": {"spec": {"template": {"spec": {}}}}},
            {"name": "node", "template": {"spec": {"template": pods}}},
        ]})
    }

    #[test]
    fn placement_changes_and_nothing_else() {
        let live = spec(&json!({
            "metadata": {"labels": {"old": "1"}},
            "spec": {
                "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                "nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "g"}],
            },
        }));
        let wanted = spec(&json!({
            "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [{"name": "node", "image": "b"}],
                "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
            },
        }));
        let jobs = placed(&live, &wanted).unwrap();
        let pods = jobs.pointer("/1/template/spec/template").unwrap();
        assert_eq!(
            *pods,
            json!({
                "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
                "spec": {
                    "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                    "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
                },
            })
        );
        assert_eq!(jobs.pointer("/0"), live.pointer("/replicatedJobs/0"));
    }

    #[test]
    fn what_is_equal_or_empty_is_no_change() {
        let live = spec(&json!({"metadata": {}, "spec": {"nodeSelector": {"zone": "a"}}}));
        let wanted = spec(&json!({"spec": {"tolerations": [], "nodeSelector": {"zone": "a"}}}));
        assert_eq!(placed(&live, &wanted), None);
    }
}

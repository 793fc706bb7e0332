//! `spec.runtimePatches`: which of them an update changes, and when it may.

use serde_json::{Map, Value};
use trainyard_api::dialect;

/// Returns the error of an update of the runtime patches, by the reference's rule: they may change if the TrainJob is suspended before or
/// after the update, and while no replicated job of it has active Jobs.
pub(super) fn error_of_update(
    new: &Value,
    old: &Value,
    active_jobs: impl FnOnce() -> Vec<String>,
) -> Option<String> {
    let [new_form, old_form] = [new, old].map(current_form);
    if has_same_patches(&new_form, &old_form) {
        return None;
    }
    if !is_suspended(new) && !is_suspended(old) {
        return Some(
            "spec.runtimePatches: cannot change while the TrainJob is not suspended; set `spec.suspend` to true first"
                .to_owned(),
        );
    }
    let active = active_jobs();
    (!active.is_empty()).then(|| {
        format!(
            "spec.runtimePatches: cannot change while these replicated jobs have active Jobs: {}; wait until their pods have ended",
            active.join(", ")
        )
    })
}

/// Returns the runtime patches of a TrainJob.
pub(super) fn patches(job: &Value) -> Vec<&Map<String, Value>> {
    let patches = job
        .pointer("/spec/runtimePatches")
        .and_then(Value::as_array);
    let patches = patches.into_iter().flatten();
    patches.filter_map(Value::as_object).collect()
}

/// Whether two patches differ in nothing but their times.
pub(super) fn is_same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let count = |patch: &Map<String, Value>| patch.keys().filter(|key| *key != "time").count();
    let mut members = one.iter().filter(|(key, _)| *key != "time");
    count(one) == count(other) && members.all(|(key, value)| other.get(key) == Some(value))
}

/// Whether two TrainJobs have the same patches, apart from their times.
fn has_same_patches(one: &Value, other: &Value) -> bool {
    let (one, other) = (patches(one), patches(other));
    let mut pairs = one.iter().zip(&other);
    one.len() == other.len() && pairs.all(|(one, other)| is_same(one, other))
}

/// Whether a TrainJob is suspended.
pub(super) fn is_suspended(job: &Value) -> bool {
    job.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true)
}

/// Returns a TrainJob with its old forms converted.
pub(super) fn current_form(job: &Value) -> Value {
    let mut converted = job.clone();
    dialect::convert(&mut converted);
    converted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(suspend: bool, zone: &str) -> Value {
        json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {
            "suspend": suspend,
            "runtimePatches": [{
                "manager": "a.io/a", "time": zone,
                "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"zone": zone}}}},
            }],
        }})
    }

    fn error(old: &Value, new: &Value, active: &[&str]) -> Option<String> {
        error_of_update(new, old, || {
            active.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn patches_change_only_while_suspended_and_without_active_jobs() {
        for (old, new) in [(true, false), (false, true), (true, true)] {
            let (old, new) = (job(old, "a"), job(new, "b"));
            assert_eq!(error(&old, &new, &[]), None);
            let refused = error(&old, &new, &["node", "launcher"]);
            assert!(
                refused.is_some_and(|why| why.starts_with("spec.runtimePatches: ")
                    && why.contains("active Jobs: node, launcher;"))
            );
        }
        let refused = error(&job(false, "a"), &job(false, "b"), &[]);
        assert!(refused.is_some_and(|why| why.contains("while the TrainJob is not suspended")));
    }

    #[test]
    fn times_and_the_form_of_patches_are_no_change() {
        let (old, mut new) = (job(false, "a"), job(false, "a"));
        if let Some(time) = new.pointer_mut("/spec/runtimePatches/0/time") {
            *time = "later".into();
        }
        assert_eq!(error(&old, &new, &["node"]), None);
        let overrides = |field: &str| {
            json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {
                field: [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"disk": "ssd"}}}],
            }})
        };
        let old = overrides("podTemplateOverrides");
        assert_eq!(error(&old, &current_form(&old), &["node"]), None);
    }
}

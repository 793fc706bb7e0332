//! The changes of the mutating webhook: old forms are converted, and the times of runtime patches are set. Nothing is refused.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use trainyard_api::dialect::{self, Conversion, MAX_PATCHES};

use super::{
    runtime_patches::{current_form, is_same, patches},
    verdict::Verdict,
};

/// Returns the changes of a TrainJob that is created, or that replaces `old`.
pub(super) fn changes(new: &Value, old: Option<&Value>, now: Timestamp) -> Verdict {
    let mut changed = new.clone();
    let mut warnings = Vec::new();
    // Old forms of a stored TrainJob are kept: it was created before there were webhooks, and its immutable fields would change.
    let has_old_forms = |stored: &Value| current_form(stored) != *stored;
    if !old.is_some_and(has_old_forms) {
        let mut converted = new.clone();
        let Conversion {
            warnings: forms,
            errors,
            ..
        } = dialect::convert(&mut converted);
        // The validating webhook reports the errors.
        if errors.is_empty() {
            warnings.extend(forms.iter().map(ToString::to_string));
            changed = converted;
        }
    }
    set_times(&mut changed, old, now);
    Verdict {
        patch: Some(json_patch::diff(new, &changed)),
        ..Verdict::of_errors(&[], warnings)
    }
}

/// Sets the times as the reference does: that of a patch that has not changed is kept, and that of any other is now, unless its manager set
/// one.
fn set_times(job: &mut Value, old: Option<&Value>, now: Timestamp) {
    let stored = old.map(patches).unwrap_or_default();
    // An API server admits no more. All are compared with each other.
    if patches(job).len().max(stored.len()) > MAX_PATCHES {
        return;
    }
    let patches = job.pointer_mut("/spec/runtimePatches");
    let patches = patches.and_then(Value::as_array_mut).into_iter().flatten();
    for patch in patches.filter_map(Value::as_object_mut) {
        let unchanged = stored.iter().find(|stored| is_same(stored, patch));
        let time = unchanged.map(|stored| stored.get("time"));
        match time {
            Some(Some(time)) => _ = patch.insert("time".to_owned(), time.clone()),
            // The reference removes the time, too.
            Some(None) => _ = patch.shift_remove("time"),
            None if patch.get("time").is_none_or(Value::is_null) => {
                let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                patch.insert("time".to_owned(), now.into());
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-27T01:02:03Z";

    fn job(spec: &Value) -> Value {
        json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "bert", "namespace": "ml"}, "spec": spec,
        })
    }

    /// Returns the changed spec and the warnings.
    fn changed(new: &Value, old: Option<&Value>) -> (Value, Vec<String>) {
        let (new, old) = (job(new), old.map(job));
        let now: Timestamp = "2026-11-27T01:02:03.987654Z".parse().unwrap();
        let verdict = changes(&new, old.as_ref(), now);
        assert_eq!(verdict.denial, None);
        let mut changed = new;
        json_patch::patch(&mut changed, &verdict.patch.unwrap()).unwrap();
        (changed["spec"].take(), verdict.warnings)
    }

    fn patch(manager: &str, zone: &str, time: Option<&str>) -> Value {
        let mut patch = json!({
            "manager": manager,
            "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"zone": zone}}}},
        });
        if let Some(time) = time {
            patch["time"] = time.into();
        }
        patch
    }

    fn times(new: &[Value], old: Option<&[Value]>) -> Vec<Value> {
        let spec =
            |patches: &[Value]| json!({"runtimeRef": {"name": "torch"}, "runtimePatches": patches});
        let (spec, warnings) = changed(&spec(new), old.map(spec).as_ref());
        assert!(warnings.is_empty(), "{warnings:?}");
        let patches = spec["runtimePatches"].as_array().unwrap().iter();
        patches.map(|patch| patch["time"].clone()).collect()
    }

    #[test]
    fn new_patches_get_the_time_unless_their_manager_set_one() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z");
        let new = [patch("a.io/a", "x", None), patch("a.io/b", "x", Some(late))];
        assert_eq!(times(&new, None), [NOW, late]);
        // Beside a patch that has not changed.
        let old = [patch("a.io/c", "x", Some(early))];
        let new = [old[0].clone(), patch("a.io/a", "x", None)];
        assert_eq!(times(&new, Some(&old)), [early, NOW]);
    }

    #[test]
    fn unchanged_patches_keep_their_time_and_changed_ones_get_a_new_one() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z");
        let old = [
            patch("a.io/a", "x", Some(early)),
            patch("a.io/b", "x", Some(early)),
        ];
        // Server-side apply sends them without a time, in any order.
        let new = [patch("a.io/b", "y", None), patch("a.io/a", "x", None)];
        assert_eq!(times(&new, Some(&old)), [NOW, early]);
        // A time alone does not make it another patch.
        let new = [patch("a.io/a", "x", Some(late))];
        assert_eq!(times(&new, Some(&old)), [early]);
        let untimed = [patch("a.io/a", "x", None)];
        assert_eq!(times(&new, Some(&untimed)), [Value::Null]);
    }

    #[test]
    fn old_forms_are_converted_with_a_warning() {
        let new = json!({
            "runtimeRef": {"name": "torch", "apiGroup": "kubeflow.org"},
            "trainer": {"numProcPerNode": "auto"},
            "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"disk": "ssd"}}}],
        });
        let (spec, warnings) = changed(&new, None);
        assert_eq!(spec["runtimeRef"]["apiGroup"], "trainer.kubeflow.org");
        assert_eq!(spec["trainer"], json!({}));
        assert_eq!(spec.get("podTemplateOverrides"), None);
        let patch = &spec["runtimePatches"][0];
        assert_eq!(
            patch["manager"],
            "trainer.kubeflow.org/pod-template-overrides"
        );
        assert_eq!(patch["time"], NOW);
        assert_eq!(warnings.len(), 3, "{warnings:?}");

        // Applied again, it is the TrainJob that is stored.
        let mut again = new;
        again["runtimePatches"] = spec["runtimePatches"].clone();
        assert_eq!(changed(&again, Some(&spec)).0, spec);
    }

    #[test]
    fn stored_old_forms_and_those_that_cannot_be_converted_are_kept() {
        let stored =
            json!({"runtimeRef": {"name": "torch", "apiGroup": "kubeflow.org"}, "suspend": true});
        let mut resumed = stored.clone();
        resumed["suspend"] = false.into();
        assert_eq!(changed(&resumed, Some(&stored)), (resumed, vec![]));
        let invalid =
            json!({"runtimeRef": {"name": "torch"}, "trainer": {"numProcPerNode": "gpu"}});
        assert_eq!(changed(&invalid, None), (invalid, vec![]));
    }

    #[test]
    fn malformed_objects_are_left_to_the_schema() {
        for spec in [
            json!(null),
            json!("text"),
            json!({"runtimePatches": "text"}),
            json!({"runtimePatches": [1, null, "text"]}),
            json!({"runtimeRef": [], "trainer": 1, "podTemplateOverrides": {"a": 1}}),
        ] {
            assert_eq!(changed(&spec, None).0, spec);
            assert_eq!(
                changed(&spec, Some(&json!({"runtimePatches": [7]}))).0,
                spec
            );
        }
    }
}

//! What an update of a TrainJob changes, and how much of it has to be checked.

use serde_json::{Map, Value};

use super::{
    runtime_patches::{current_form, is_suspended},
    stored::is_deleted,
};
use crate::{
    reconcile::{DryRun, status},
    watch::TrainJobState,
};

/// What a request changes of a TrainJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is created.
    Created,
    /// Its spec changes, apart from `suspend`.
    Spec {
        /// Whether it is suspended by this update.
        suspends: bool,
    },
    /// Nothing in its spec changes but `suspend`, or it is being deleted. That is always admitted, whatever its runtime and plugins say:
    /// a TrainJob that was admitted can be stopped, resumed and deleted.
    Nothing,
}

impl Change {
    /// Returns what a request changes. `new` and `old` are the whole objects.
    pub(super) fn of(new: &Value, old: Option<&Value>) -> Self {
        let Some(old) = old else {
            return Self::Created;
        };
        if is_deleted(new) || rendered(new) == rendered(old) {
            return Self::Nothing;
        }
        Self::Spec {
            suspends: is_suspended(new) && !is_suspended(old),
        }
    }

    /// Returns what is checked of the TrainJob; `None` if nothing is.
    pub(super) fn check(self, job: &TrainJobState) -> Option<DryRun> {
        // The controller renders neither.
        let is_rendered = job.desired.managed_by_us && status::end(&job.status).is_none();
        match self {
            Self::Nothing => None,
            Self::Created if is_rendered => Some(DryRun::RenderNew),
            // An admission that is withdrawn removes its patches in the same request.
            Self::Spec { suspends: false } if is_rendered => Some(DryRun::RenderExisting),
            Self::Created | Self::Spec { .. } => Some(DryRun::Read),
        }
    }
}

/// Returns the spec in its current form, without `suspend` and the times of patches.
fn rendered(job: &Value) -> Option<Map<String, Value>> {
    let mut converted = current_form(job);
    let mut spec = match converted.get_mut("spec")?.take() {
        Value::Object(spec) => spec,
        _ => return None,
    };
    spec.shift_remove("suspend");
    let patches = spec.get_mut("runtimePatches").and_then(Value::as_array_mut);
    for patch in patches.into_iter().flatten() {
        if let Some(patch) = patch.as_object_mut() {
            patch.shift_remove("time");
        }
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;
    use crate::watch::{Decode as _, TrainJobObject};

    fn job() -> Value {
        json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {
                "name": "bert", "namespace": "ml", "uid": "1", "creationTimestamp": "2026-11-27T01:02:03Z",
            },
            "spec": {"runtimeRef": {"name": "torch"}, "suspend": false, "runtimePatches": [
                {"manager": "a.io/a", "time": "2026-11-27T01:02:03Z"},
            ]},
        })
    }

    /// Returns what is checked after a change of the TrainJob.
    fn check(change: impl FnOnce(&mut Value)) -> Option<DryRun> {
        let (old, mut new) = (job(), job());
        change(&mut new);
        let state = TrainJobObject::decode(&new.to_string(), 1).unwrap();
        Change::of(&new, Some(&old)).check(&state)
    }

    #[test]
    fn what_was_admitted_can_always_be_suspended_resumed_and_deleted() {
        assert_eq!(check(|_| {}), None);
        assert_eq!(check(|job| job["spec"]["suspend"] = true.into()), None);
        assert_eq!(check(|job| job["spec"]["suspend"] = Value::Null), None);
        let deleted = |job: &mut Value| {
            job["metadata"]["deletionTimestamp"] = "2026-11-27T01:02:03Z".into();
            job["spec"]["runtimePatches"] = json!([]);
        };
        assert_eq!(check(deleted), None);
        let finalizers = |job: &mut Value| job["metadata"]["finalizers"] = json!(["a.io/b"]);
        assert_eq!(check(finalizers), None);
        let labels = |job: &mut Value| job["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(check(labels), None);
        let time = |job: &mut Value| job["spec"]["runtimePatches"][0]["time"] = "later".into();
        assert_eq!(check(time), None);
        // A queue that withdraws its admission removes its patches in the same request.
        let withdrawn = |job: &mut Value| {
            job["spec"]["suspend"] = true.into();
            job["spec"]["runtimePatches"] = json!([]);
        };
        assert_eq!(check(withdrawn), Some(DryRun::Read));
    }

    #[test]
    fn only_what_is_rendered_later_is_rendered() {
        let (old, patched) = (job(), |job: &mut Value| {
            job["spec"]["runtimePatches"] = json!([])
        });
        assert_eq!(check(patched), Some(DryRun::RenderExisting));
        let managed = |job: &mut Value| {
            patched(job);
            job["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue".into();
        };
        assert_eq!(check(managed), Some(DryRun::Read));
        let ended = |job: &mut Value| {
            patched(job);
            job["status"] = json!({"conditions": [{
                "type": "Complete", "status": "True", "reason": "a", "message": "", "lastTransitionTime": "2026-11-27T01:02:03Z",
            }]});
        };
        assert_eq!(check(ended), Some(DryRun::Read));
        let created = TrainJobObject::decode(&old.to_string(), 1).unwrap();
        let check = Change::of(&old, None).check(&created);
        assert_eq!(check, Some(DryRun::RenderNew));
    }

    #[test]
    fn a_conversion_of_old_forms_is_no_change() {
        let mut stored = job();
        stored["spec"] = json!({
            "runtimeRef": {"name": "torch", "apiGroup": "kubeflow.org"},
            "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"disk": "ssd"}}}],
        });
        let converted = current_form(&stored);
        assert_ne!(converted, stored);
        assert_eq!(Change::of(&converted, Some(&stored)), Change::Nothing);
    }
}

//! The TrainJob, converted from old API forms and validated.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::TrainJob;

use crate::{
    admission,
    reconcile::{
        artifacts::Artifacts, context::Context, error::ReconcileError, inputs::Inputs,
        observed::Fact,
    },
    watch::TrainJobState,
};

/// Reads the TrainJob when the memory budget has room for it.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
) -> Result<Fact, ReconcileError> {
    let state = cx.job()?;
    let budget = &cx.reconciler.budget;
    let reserved = budget.reserve(&cx.key.namespace, state.text().len());
    let reserved = cx.worker.free_while(reserved).await;
    let text = state.clone();
    let job = cx.on_thread(move |_, _| read(&text)).await??;
    let large = artifacts.large();
    large.budget = reserved;
    large.job = Some(Arc::new(job));
    large.inputs = Some(Inputs::of(&cx.reconciler.common, state));
    Ok(Fact::Holds)
}

/// Reads a stored TrainJob, including old API forms.
pub(in crate::reconcile) fn read(state: &TrainJobState) -> Result<TrainJob, ReconcileError> {
    let object = state.object().map_err(|problem| vec![problem]);
    object.and_then(admit).map_err(ReconcileError::TrainJob)
}

fn admit(object: Value) -> Result<TrainJob, Vec<String>> {
    let mut admitted = admission::admit(object)?;
    let job = admitted.train_job();
    job.ok_or_else(|| admission::errors_of(&admitted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn job(spec: Value) -> Value {
        json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "bert", "namespace": "ml"},
            "spec": spec,
        })
    }

    fn refusal(spec: Value) -> String {
        ReconcileError::TrainJob(admit(job(spec)).unwrap_err()).to_string()
    }

    fn overrides(pods: &Value) -> Value {
        let one = json!({"targetJobs": [{"name": "node"}], "spec": pods});
        json!({"runtimeRef": {"name": "torch"}, "podTemplateOverrides": [one]})
    }

    #[test]
    fn converted_overrides_are_checked_like_patches() {
        admit(job(overrides(&json!({"nodeSelector": {"disk": "ssd"}})))).unwrap();
        let error = refusal(overrides(&json!({"hostNetwork": true})));
        let wanted = "unknown field \"spec.podTemplateOverrides[0].spec.hostNetwork\"";
        assert!(error.contains(wanted), "{error}");
        let many: Vec<_> = (0..129).map(|at| json!({"key": at.to_string()})).collect();
        let error = refusal(overrides(&json!({"tolerations": many})));
        let wanted = "spec.podTemplateOverrides[0].spec.tolerations: Too many: 129: ";
        assert!(error.contains(wanted), "{error}");
    }

    #[test]
    fn too_many_overrides_are_refused_before_they_are_converted() {
        let one = json!({"targetJobs": [{"name": "node"}], "spec": {}});
        let many = vec![one; 18_000];
        let error = refusal(json!({"runtimeRef": {"name": "a"}, "podTemplateOverrides": many}));
        let wanted = "spec.podTemplateOverrides: has 18000 overrides, but at most 256 are allowed";
        assert!(error.starts_with(wanted), "{error}");
    }

    #[test]
    fn the_runtime_guides_api_group_is_the_current_one() {
        let reference = json!({"name": "torch", "apiGroup": "kubeflow.org"});
        let read = admit(job(json!({"runtimeRef": reference}))).unwrap();
        assert_eq!(read.runtime_ref.name, "torch");
    }
}

//! The TrainJob: reading it, with old API forms converted, and writing its status and the annotation about its error.

use std::sync::Arc;

use kube::api::{GetParams, Patch};
use serde_json::{Value, json};
use trainyard_api::{TrainJob, names::ERROR_ANNOTATION};

use super::{LiveCluster, merging};
use crate::{
    admission,
    fair::Permit,
    kubernetes::unless_gone,
    reconcile::{
        cluster::{Result, TrainJobs},
        error::ReconcileError,
        inputs::Inputs,
        last_reconcile::AnnotationWrite,
    },
    watch::{Keyed, State as _, TrainJobObject, TrainJobState, TrainJobStatus, answer, objects},
};

/// A valid TrainJob.
pub(in crate::reconcile) struct AdmittedTrainJob {
    pub(in crate::reconcile) job: Arc<TrainJob>,
    /// The digest of its inputs.
    pub(super) inputs: Inputs,
    /// The memory reserved for a large TrainJob.
    _memory: Option<Permit>,
}

impl TrainJobs for LiveCluster<'_> {
    fn inputs(&self) -> Inputs {
        Inputs::of(&self.pinned.generation().common, &self.job)
    }

    /// The TrainJob is read when the memory budget has room for it.
    async fn train_job(&mut self) -> Result<AdmittedTrainJob> {
        let budget = &self.reconciler.budget;
        let reserved = budget.reserve(&self.key.namespace, self.job.text().len());
        let memory = self.worker.free_while(reserved).await;
        let text = self.job.clone();
        let job = self.on_thread(move |_, _| read(&text)).await??;
        Ok(AdmittedTrainJob {
            job: Arc::new(job),
            inputs: self.inputs(),
            _memory: memory,
        })
    }

    /// Reads the TrainJob from the API server, and updates the store if it is outdated. Otherwise, if the watch is behind, the JobSet of a
    /// TrainJob that was deleted or has ended would be recreated.
    async fn confirm_train_job(&mut self) -> Result<()> {
        let (key, known) = (self.key, &self.job);
        let what = format!("TrainJob `{}`", key.name);
        let request = objects::<TrainJobObject>(&key.namespace);
        let request = request.get(&key.name, &GetParams::default());
        let found = unless_gone(answer::<TrainJobObject>(&self.reconciler.client, request).await);
        let found = found.map_err(|error| ReconcileError::api(format!("reading {what}"), error))?;
        let jobs = &self.reconciler.stores.jobs;
        match found.flatten() {
            Some((_, Ok(now)))
                if now.uid == known.uid && now.resource_version() == known.resource_version() =>
            {
                return Ok(());
            }
            Some((key, now)) => drop(jobs.put_read(key, now)),
            None => jobs.remove(key, known.version()),
        }
        Err(ReconcileError::Conflict { what })
    }

    /// The store is updated with the answer.
    async fn write_status(&mut self, status: &TrainJobStatus) -> Result<()> {
        let patch = json!({
            "metadata": {"uid": self.job.uid, "resourceVersion": self.job.resource_version()},
            // An empty list would mean that no replicated job is known yet.
            "status": {
                "conditions": status.conditions,
                "jobsStatus": (!status.jobs_status.is_empty()).then_some(&status.jobs_status),
            },
        });
        let (patch, params) = (Patch::Merge(&patch), merging());
        let jobs = objects::<TrainJobObject>(&self.key.namespace);
        let request = jobs.patch_subresource("status", &self.key.name, &params, &patch);
        if let Some((key, read)) = self.send("writing the TrainJob's status", request).await? {
            self.reconciler.stores.jobs.put_read(key, read);
        }
        Ok(())
    }

    /// The merge patch changes nothing else of the TrainJob. Only the watch updates the store, because it compares each version with the one
    /// before: a version that differs only in the annotation does not trigger a reconcile.
    async fn write_error(&mut self, error: Option<Arc<str>>) -> Result<()> {
        let uid = &self.job.uid;
        let patch = json!({
            "metadata": {"uid": uid, "annotations": {ERROR_ANNOTATION: error.as_deref()}},
        });
        let jobs = objects::<TrainJobObject>(&self.key.namespace);
        let request = jobs.patch(&self.key.name, &merging(), &Patch::Merge(&patch));
        let note = |refused| {
            let write = AnnotationWrite {
                uid: uid.clone(),
                text: error.clone(),
                at: self.now,
                refused,
            };
            self.reconciler.annotated().insert(self.key.clone(), write);
        };
        // Noted first, because the watch may show it before the answer arrives.
        note(false);
        let sent = self
            .send("writing the TrainJob's annotation", request)
            .await;
        sent.map(drop)
            .inspect_err(|error| note(error.is_rejection()))
    }
}

impl LiveCluster<'_> {
    /// Sends a patch and returns the answer; `None` if the TrainJob does not exist.
    async fn send(
        &self,
        what: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<Keyed<TrainJobObject>>> {
        let written = answer::<TrainJobObject>(&self.reconciler.client, request).await;
        let written = unless_gone(written).map_err(|error| ReconcileError::api(what, error))?;
        if written.is_none() {
            // The TrainJob was deleted in the meantime.
            let jobs = &self.reconciler.stores.jobs;
            jobs.remove(self.key, self.job.version());
        }
        Ok(written.flatten())
    }
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

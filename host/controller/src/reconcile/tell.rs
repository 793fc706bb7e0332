//! What the status of a TrainJob says, and the end of one that takes too long.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::Patch;
use serde_json::json;

use super::error::ReconcileError;
use super::{Reconciler, merging, status};
use crate::kubernetes::unless_gone;
use crate::queue::Key;
use crate::watch::{State, TrainJobObject, TrainJobState, TrainJobStatus, answer, objects};

impl Reconciler {
    /// Writes the status, which shows at once what was made, and ends what takes too long.
    pub(super) async fn tell(
        &self,
        key: &Key,
        state: &TrainJobState,
        suspend: bool,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let status = self.status_if(key, state, suspend, now);
        self.write_status(key, state, &status).await?;
        if status::end(&status).is_some() {
            self.departed.forget(key);
        }
        self.end_overdue(key, state, &status).await
    }

    /// The time until the TrainJob's deadline, where it has one before it.
    pub(super) fn deadline(
        &self,
        key: &Key,
        state: &TrainJobState,
        now: Timestamp,
    ) -> Option<Duration> {
        let wishes = &state.wishes;
        if wishes.not_supported.is_some() {
            return None;
        }
        let status = self.status(key, state, now);
        let until = status::deadline(wishes.deadline, wishes.suspend, state.created, &status)
            .filter(|_| status::end(&status).is_none())?;
        Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
    }

    pub(super) fn status(
        &self,
        key: &Key,
        state: &TrainJobState,
        now: Timestamp,
    ) -> TrainJobStatus {
        self.status_if(key, state, state.wishes.suspend, now)
    }

    /// The status of a TrainJob that counts as suspended or not.
    fn status_if(
        &self,
        key: &Key,
        state: &TrainJobState,
        suspend: bool,
        now: Timestamp,
    ) -> TrainJobStatus {
        let wishes = &state.wishes;
        let job_set = self.job_set(key, state);
        let job_set = job_set.or_else(|| self.departed.ended(key, &state.uid));
        let status = status::next(&state.status, suspend, job_set.as_deref(), now);
        if status::end(&status).is_some() {
            return status;
        }
        if let Some(message) = &wishes.not_supported {
            return status::not_supported(&status, message, now);
        }
        match status::deadline(wishes.deadline, suspend, state.created, &status) {
            Some(deadline) if deadline <= now => status::deadline_exceeded(&status, now),
            _ => status,
        }
    }

    async fn write_status(
        &self,
        key: &Key,
        state: &TrainJobState,
        status: &TrainJobStatus,
    ) -> Result<(), ReconcileError> {
        if *status == state.status {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"uid": state.uid, "resourceVersion": state.resource_version()},
            // An empty list would be one of a TrainJob that has replicated jobs, none of which is known.
            "status": {
                "conditions": status.conditions,
                "jobsStatus": (!status.jobs_status.is_empty()).then_some(&status.jobs_status),
            },
        });
        let (patch, params) = (Patch::Merge(&patch), merging());
        let jobs = objects::<TrainJobObject>(&key.namespace);
        let request = jobs.patch_subresource("status", &key.name, &params, &patch);
        let written = answer::<TrainJobObject>(&self.client, request).await;
        let written = unless_gone(written)
            .map_err(|error| ReconcileError::api("writing the TrainJob's status", error))?;
        match written {
            // It was deleted meanwhile: there is nothing to say any more.
            None => self.stores.jobs.remove(key, State::version(state)),
            Some(Some((key, read))) => drop(self.stores.jobs.put_read(key, read)),
            Some(None) => {}
        }
        Ok(())
    }

    /// Deletes the JobSet of a TrainJob that took too long, once its status says so.
    async fn end_overdue(
        &self,
        key: &Key,
        state: &TrainJobState,
        status: &TrainJobStatus,
    ) -> Result<(), ReconcileError> {
        let overdue =
            status::end(status).is_some_and(|end| end.reason == status::DEADLINE_EXCEEDED);
        match self.job_set(key, state) {
            Some(job_set) if overdue && !job_set.deleting => {
                self.delete_job_set(key, &job_set.uid, None).await
            }
            _ => Ok(()),
        }
    }
}

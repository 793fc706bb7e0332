//! The Jobs of a JobSet, and those of a suspended one that still have entries which were removed from the placement of its pods.

use std::sync::Arc;

use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use serde::Deserialize;
use serde_json::Value;
use trainyard_model::names::{JOB_SET_NAME, REPLICATED_JOB_NAME};

use super::LiveCluster;
use crate::{
    kubernetes::{kind_of, unless_gone},
    reconcile::{
        cluster::{Jobs, Result},
        error::ReconcileError,
        facts::OldJob,
        job_set::SuspendedJobSet,
        owner,
        placement::{self, Index},
    },
    wire::{self, without_managed_fields},
};

/// The most memory of a Job that is found, which is known by its name and UID.
const LARGEST_JOB: usize = 512;

impl Jobs for LiveCluster<'_> {
    async fn old_jobs(&mut self, job_set: &Arc<SuspendedJobSet>) -> Result<Vec<OldJob>> {
        let (uid, Some(removed)) = (job_set.uid.clone(), job_set.missing.clone()) else {
            return Ok(Vec::new());
        };
        // Filtered while decoding, because there may be many large Jobs.
        let read = move |text: &str| {
            let job = PlacedJob::read(text)?;
            let is_its = owner::is_controlled_by(&uid, &job.metadata);
            let is_old = is_its && !job.has_ended && job.has(&removed);
            let ObjectMeta {
                name,
                uid,
                deletion_timestamp,
                ..
            } = job.metadata;
            is_old.then(|| OldJob {
                name: name.unwrap_or_default().into(),
                uid: uid.map(Into::into),
                deleting: deletion_timestamp.is_some(),
            })
        };
        let listed = async {
            let resumes = &self.reconciler.resumes;
            let _turn = resumes.acquire(&self.key.namespace, 1).await;
            self.jobs(read).await
        };
        self.worker.free_while(listed).await
    }

    async fn delete_job(&mut self, job: &OldJob) -> Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: job.uid.as_deref().map(Into::into),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let jobs = self.dynamic(&kind_of("batch/v1", "Job"));
        let deleted = unless_gone(jobs.delete(&job.name, &params).await);
        let failed = |error| ReconcileError::api(format!("deleting Job `{}`", job.name), error);
        deleted.map(drop).map_err(failed)
    }
}

impl LiveCluster<'_> {
    /// Lists the Jobs of the JobSet, and returns what `read` keeps of each.
    pub(super) async fn jobs<T: Send + 'static>(
        &self,
        read: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        let params = ListParams::default().labels(&format!("{JOB_SET_NAME}={}", self.key.name));
        let kind = kind_of("batch/v1", "Job");
        self.list(&kind, params, read, |_| LARGEST_JOB).await
    }
}

/// A Job with the placement of its pods.
#[derive(Debug)]
struct PlacedJob {
    metadata: ObjectMeta,
    /// The fields of its pod template that place pods.
    pods: Value,
    has_ended: bool,
}

/// The same as the API server sends it.
#[derive(Deserialize)]
struct WirePlacedJob {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    template: Value,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

impl PlacedJob {
    /// Parses a Job. One that cannot be decoded was not created by JobSet, because its JobSet could not be decoded either.
    fn read(text: &str) -> Option<Self> {
        let sent: WirePlacedJob = wire::decode(&without_managed_fields(text))
            .inspect_err(|why| tracing::debug!(%why, "a Job cannot be decoded and is not changed"))
            .ok()?;
        let mut conditions = sent.status.conditions.iter();
        Some(Self {
            pods: placement::of(&sent.spec.template),
            has_ended: conditions.any(|condition| {
                matches!(condition.r#type.as_str(), "Complete" | "Failed")
                    && condition.status == "True"
            }),
            metadata: sent.metadata,
        })
    }

    /// Whether its pod template has one of the entries.
    fn has(&self, removed: &Index) -> bool {
        let labels = self.metadata.labels.as_ref();
        let name = labels.and_then(|labels| labels.get(REPLICATED_JOB_NAME));
        name.is_some_and(|name| removed.has_any_of(name, &self.pods))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::reconcile::placement::Entries;

    #[test]
    fn jobs_that_ended_or_have_no_removed_entries_are_kept() {
        let job = |selector: &str, end: Option<&str>| {
            let condition = end.map(|kind| json!({"type": kind, "status": "True"}));
            let job = json!({
                "metadata": {
                    "name": "a-node-0", "labels": {REPLICATED_JOB_NAME: "node"},
                    "managedFields": [{"time": "9999-12-31T23:59:59Z"}],
                },
                "spec": {"template": {"spec": {"nodeSelector": {selector: "a"}, "containers": [{"name": "node"}]}}},
                "status": {"conditions": condition.into_iter().collect::<Vec<_>>()},
            });
            PlacedJob::read(&job.to_string()).unwrap()
        };
        let removed = json!({"node": {"/spec/nodeSelector": {"zone": "a"}}});
        let removed = Entries::parse(&removed.to_string()).unwrap().index();
        assert!(job("zone", None).has(&removed) && !job("rack", None).has(&removed));
        assert_eq!(
            job("zone", None).pods,
            json!({"spec": {"nodeSelector": {"zone": "a"}}})
        );
        assert!(!job("zone", None).has_ended && !job("zone", Some("Suspended")).has_ended);
        let ends = ["Complete", "Failed"];
        assert!(ends.iter().all(|end| job("zone", Some(end)).has_ended));
        let deep = format!(
            "{{\"metadata\": {{}}, \"spec\": {{\"template\": {}{}}}}}",
            "[".repeat(300),
            "]".repeat(300)
        );
        assert!(PlacedJob::read(&deep).is_none());
    }
}

//! The Jobs of a suspended JobSet, which keep what an earlier admission added to the placement of their pods.

use std::sync::Arc;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Preconditions};
use kube::{Api, Resource as _};
use serde::Deserialize;
use serde_json::Value;
use trainyard_render::Warning;

use super::job_sets::Suspended;
use super::{Pass, warning};
use crate::kubernetes::kind_of;
use crate::kubernetes::unless_gone;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::owner;
use crate::reconcile::placement::{self, Index};
use crate::watch::{Feed, FeedError};
use crate::wire::{self, without_managed_fields};

/// The label of a Job with the name of its JobSet.
const JOB_SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// The label of a Job with the name of its replicated job.
const REPLICATED_JOB_NAME: &str = "jobset.sigs.k8s.io/replicatedjob-name";

impl Pass<'_> {
    /// The Jobs of a JobSet that have not ended, and have what was taken from the placement of its pods.
    async fn old_jobs(
        &self,
        live: &Suspended,
        taken: Arc<Index>,
    ) -> Result<Vec<ObjectMeta>, kube::Error> {
        let resource = ApiResource::from_gvk(&kind_of("batch/v1", "Job"));
        let path = DynamicObject::url_path(&resource, Some(&self.key.namespace));
        let params = ListParams::default().labels(&format!("{JOB_SET_NAME}={}", self.key.name));
        let uid = live.uid.clone();
        // Decided where they are decoded: there may be many, and large ones.
        let read = move |text: &str| {
            let job = Job::read(text)?;
            let is_old = owner::is_of(&uid, &job.metadata) && !job.has_ended && job.has(&taken);
            is_old.then_some(job.metadata)
        };
        let feed = Feed::new(self.reconciler.client.clone(), path, params, read);
        let found = feed.all().await.map_err(FeedError::into_call)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Makes sure that no Job of a suspended JobSet has what was taken from the placement of its pods. One that has is deleted, so that
    /// JobSet creates it again from its template; that is waited for.
    ///
    /// # Errors
    /// Some Jobs have it still.
    pub(super) async fn jobs_without(
        &self,
        live: &Suspended,
    ) -> Result<Option<Warning>, ReconcileError> {
        let Some(taken) = live.gone.clone() else {
            return Ok(None);
        };
        let name = &self.key.name;
        let failed = |what: String| move |error| ReconcileError::api(what, error);
        let old = self.old_jobs(live, taken).await;
        let old = match old.map_err(failed(format!("listing the Jobs of JobSet `{name}`"))) {
            Ok(old) => old,
            // Without the right to see them it goes on as JobSet lets it.
            Err(error) if error.is_refusal() => return Ok(Some(warning(&error))),
            Err(error) => return Err(error),
        };
        if old.is_empty() {
            return Ok(None);
        }
        // Pods that are about to end go first: their successors have the same names.
        let to_delete = old
            .iter()
            .filter(|job| !live.is_active && job.deletion_timestamp.is_none());
        let kind = kind_of("batch/v1", "Job");
        let jobs: Api<DynamicObject> = self.reconciler.dynamic(self.key, kind);
        for job in to_delete {
            let name = job.name.as_deref().unwrap_or_default();
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: job.uid.clone(),
                    resource_version: None,
                }),
                ..DeleteParams::background()
            };
            let deleted = unless_gone(jobs.delete(name, &params).await);
            deleted.map_err(failed(format!("deleting Job `{name}`")))?;
        }
        Err(ReconcileError::JobsHaveOldPlacement {
            name: name.to_string(),
        })
    }
}

/// A Job, as far as it says how its pods are placed.
#[derive(Debug)]
struct Job {
    metadata: ObjectMeta,
    /// What places the pods in its template.
    pods: Value,
    has_ended: bool,
}

/// A Job as it is sent.
#[derive(Deserialize)]
struct Sent {
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

impl Job {
    /// That of the text. One that can't be decoded is none that JobSet made: the JobSet could not be decoded either.
    fn read(text: &str) -> Option<Self> {
        let sent: Sent = wire::decode(&without_managed_fields(text))
            .inspect_err(|why| tracing::warn!(%why, "a Job is left as it is"))
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
    fn has(&self, taken: &Index) -> bool {
        let labels = self.metadata.labels.as_ref();
        let name = labels.and_then(|labels| labels.get(REPLICATED_JOB_NAME));
        name.is_some_and(|name| taken.has_any_of(name, &self.pods))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::reconcile::placement::Entries;

    #[test]
    fn a_job_that_has_ended_or_has_nothing_of_an_earlier_placement_stays() {
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
            Job::read(&job.to_string()).unwrap()
        };
        let taken = json!({"node": {"/spec/nodeSelector": {"zone": "a"}}});
        let taken = Entries::parse(&taken.to_string()).unwrap().index();
        assert!(job("zone", None).has(&taken) && !job("rack", None).has(&taken));
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
        assert!(Job::read(&deep).is_none());
    }
}

//! The Jobs of a suspended JobSet, which keep what an earlier admission added to the placement of their pods.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use serde_json::Value;
use trainyard_render::Warning;

use super::job_sets::Suspended;
use super::{Pass, warning};
use crate::reconcile::error::{ReconcileError, unless_gone};
use crate::reconcile::owner;
use crate::reconcile::placement::Entries;

/// The label of a Job with the name of its JobSet.
const JOB_SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// The label of a Job with the name of its replicated job.
const REPLICATED_JOB_NAME: &str = "jobset.sigs.k8s.io/replicatedjob-name";

impl Pass<'_> {
    /// Makes sure that no Job of a suspended JobSet has what was taken from the placement of its pods. One that has is deleted, so that
    /// JobSet creates it again from its template; that is waited for.
    ///
    /// # Errors
    /// Some Jobs have it still.
    pub(super) async fn jobs_without(
        &self,
        live: &Suspended,
    ) -> Result<Option<Warning>, ReconcileError> {
        let taken = live.taken();
        if taken.is_empty() {
            return Ok(None);
        }
        let name = &self.key.name;
        let jobs: Api<DynamicObject> = self.reconciler.dynamic(self.key, "batch/v1", "Job");
        let params = ListParams::default().labels(&format!("{JOB_SET_NAME}={name}"));
        let failed = |what: String| move |error| ReconcileError::api(what, error);
        let found = jobs.list(&params).await;
        let found = match found.map_err(failed(format!("listing the Jobs of JobSet `{name}`"))) {
            Ok(found) => found,
            // Without the right to see them it goes on as JobSet lets it.
            Err(error) if error.is_refusal() => return Ok(Some(warning(&error))),
            Err(error) => return Err(error),
        };
        let is_old = |job: &DynamicObject| {
            owner::is_of(&live.uid, &job.metadata) && !has_ended(job) && has(job, &taken)
        };
        let old: Vec<_> = found.items.into_iter().filter(is_old).collect();
        if old.is_empty() {
            return Ok(None);
        }
        // Pods that are about to end go first: their successors have the same names.
        let to_delete = old
            .iter()
            .filter(|job| !live.is_active && job.metadata.deletion_timestamp.is_none());
        for job in to_delete {
            let name = job.metadata.name.as_deref().unwrap_or_default();
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: job.metadata.uid.clone(),
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

/// Whether the pod template of the Job has one of the entries.
fn has(job: &DynamicObject, taken: &Entries) -> bool {
    let labels = job.metadata.labels.as_ref();
    let name = labels.and_then(|labels| labels.get(REPLICATED_JOB_NAME));
    let pods = job.data.pointer("/spec/template");
    name.zip(pods)
        .is_some_and(|(name, pods)| taken.are_in(name, pods))
}

fn has_ended(job: &DynamicObject) -> bool {
    let conditions = job.data.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions.any(|condition| {
        let is = |field: &str, text: &str| condition.get(field).is_some_and(|value| value == text);
        (is("type", "Complete") || is("type", "Failed")) && is("status", "True")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_that_has_ended_or_has_nothing_of_an_earlier_placement_stays() {
        let job = |selector: &str, end: Option<&str>| -> DynamicObject {
            let condition = end.map(|kind| json!({"type": kind, "status": "True"}));
            serde_json::from_value(json!({
                "metadata": {"name": "a-node-0", "labels": {REPLICATED_JOB_NAME: "node"}},
                "spec": {"template": {"spec": {"nodeSelector": {selector: "a"}}}},
                "status": {"conditions": condition.into_iter().collect::<Vec<_>>()},
            }))
            .unwrap()
        };
        let taken = json!({"node": {"/spec/nodeSelector": {"zone": "a"}}});
        let taken: Entries = serde_json::from_value(taken).unwrap();
        assert!(has(&job("zone", None), &taken) && !has(&job("rack", None), &taken));
        assert!(!has_ended(&job("zone", None)) && !has_ended(&job("zone", Some("Suspended"))));
        assert!(
            ["Complete", "Failed"]
                .iter()
                .all(|end| has_ended(&job("zone", Some(end))))
        );
    }
}

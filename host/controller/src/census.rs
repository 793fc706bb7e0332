//! How many TrainJobs are in which state, as metrics show it.

use crate::{
    failures::FailureCause,
    metrics::TrainJobLabels,
    reconcile::{NOT_CREATED, WAITS, status},
    watch::{JobSetState, TrainJobState},
};

/// The state of a TrainJob and the reason for it. Both are words of a fixed list.
pub(crate) fn labels(
    job: &TrainJobState,
    job_set: Option<&JobSetState>,
    cause: Option<FailureCause>,
) -> TrainJobLabels {
    let of = |state, reason| TrainJobLabels { state, reason };
    let reason = cause.map_or("", |cause| cause.reason);
    if job.status.is_true(status::COMPLETE).is_some() {
        return of("complete", "");
    }
    if let Some(failed) = job.status.is_true(status::FAILED) {
        return of("failed", status::known_reason(&failed.reason));
    }
    if !job.desired.managed_by_us {
        let is_active = job.status.jobs_status.iter().any(|it| it.active > 0);
        let state = if is_active { "running" } else { "waiting" };
        return of(state, "ManagedExternally");
    }
    let is_own = |found: &&JobSetState| found.owner.as_deref() == Some(&job.uid);
    let runs = job_set.filter(is_own).is_some_and(|found| !found.suspended);
    if runs && ![NOT_CREATED, WAITS].contains(&reason) {
        return of("running", reason);
    }
    match cause {
        _ if job.desired.suspend => of("suspended", reason),
        Some(FailureCause {
            needs_correction: true,
            ..
        }) => of("refused", reason),
        _ => of("waiting", reason),
    }
}

/// The labels of a TrainJob that cannot be decoded.
pub(crate) const UNREADABLE: TrainJobLabels = TrainJobLabels {
    state: "refused",
    reason: "UnreadableObject",
};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;
    use crate::watch::{Decode as _, JobSetObject, TrainJobObject};

    fn job(spec: Value, condition: Option<(&str, &str)>) -> TrainJobState {
        let conditions = condition.map(|(kind, reason)| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        });
        let object = json!({
            "metadata": {"name": "a", "namespace": "b", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec,
            "status": {"conditions": conditions.into_iter().collect::<Vec<_>>()},
        });
        TrainJobObject::decode(&object.to_string(), 1).unwrap()
    }

    fn job_set(owner: &str, suspend: bool) -> JobSetState {
        let object = json!({
            "metadata": {
                "name": "a", "namespace": "b", "uid": "s",
                "ownerReferences": [{
                    "apiVersion": "a", "kind": "TrainJob", "name": "a", "uid": owner, "controller": true,
                }],
            },
            "spec": {"suspend": suspend},
        });
        JobSetObject::decode(&object.to_string(), 1).unwrap()
    }

    #[test]
    fn each_train_job_has_one_state() {
        let plain = || job(json!({}), None);
        let suspended = || job(json!({"suspend": true}), None);
        let elsewhere = job(json!({"managedBy": "kueue.x-k8s.io/multikueue"}), None);
        let cause = |reason, needs_correction| {
            Some(FailureCause {
                reason,
                needs_correction,
            })
        };
        let (runs, waits, foreign) = (
            job_set("u", false),
            job_set("u", true),
            job_set("other", false),
        );
        let missing = cause("RuntimeNotFound", false);
        let refused = cause("Refused", true);
        for (job, job_set, cause, state, reason) in [
            (plain(), None, None, "waiting", ""),
            (plain(), None, missing, "waiting", "RuntimeNotFound"),
            (plain(), None, refused, "refused", "Refused"),
            (plain(), Some(&foreign), None, "waiting", ""),
            (plain(), Some(&waits), None, "waiting", ""),
            (plain(), Some(&runs), None, "running", ""),
            (
                plain(),
                Some(&runs),
                cause("ObjectLost", false),
                "running",
                "ObjectLost",
            ),
            (
                plain(),
                Some(&runs),
                cause("NotCreated", false),
                "waiting",
                "NotCreated",
            ),
            (suspended(), Some(&waits), None, "suspended", ""),
            (suspended(), None, refused, "suspended", "Refused"),
            (suspended(), Some(&runs), None, "running", ""),
            (elsewhere, None, None, "waiting", "ManagedExternally"),
            (
                job(json!({}), Some(("Complete", "AllJobsCompleted"))),
                Some(&runs),
                None,
                "complete",
                "",
            ),
            (
                job(json!({}), Some(("Failed", "DeadlineExceeded"))),
                None,
                None,
                "failed",
                "DeadlineExceeded",
            ),
            (
                job(json!({}), Some(("Failed", "whatever"))),
                None,
                None,
                "failed",
                "JobSetFailed",
            ),
        ] {
            let found = labels(&job, job_set, cause);
            assert_eq!((found.state, found.reason), (state, reason), "{job:?}");
        }
    }
}

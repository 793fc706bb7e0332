//! How long a TrainJob waited for its JobSet, as a service level indicator.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::status;
use crate::watch::TrainJobState;

/// Returns the time from the creation of a TrainJob to that of its first JobSet, by the clock of the API server. `None` if something other
/// than the controller and the API server may have delayed the JobSet: the TrainJob is or was suspended, as by Kueue, or an error that its
/// author or an operator can correct was reported on it. `job` is the TrainJob before its JobSet was created.
pub(super) fn creation_delay(job: &TrainJobState, job_set_created: Timestamp) -> Option<Duration> {
    let was_suspended = || {
        let mut conditions = job.status.conditions.iter();
        conditions.any(|condition| condition.type_ == status::SUSPENDED)
    };
    let had_job_set = !job.status.jobs_status.is_empty();
    if job.desired.suspend || was_suspended() || had_job_set || job.error.is_some() {
        return None;
    }
    // Replicas of the API server may have clocks that differ by a little.
    let delay = Duration::try_from(job_set_created.duration_since(job.created));
    Some(delay.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;
    use crate::watch::{Decode as _, TrainJobObject};

    fn job(spec: &Value, annotations: &Value, status: &Value) -> TrainJobState {
        let object = json!({
            "metadata": {
                "name": "a", "namespace": "b", "uid": "u", "creationTimestamp": "2026-01-01T00:00:10Z",
                "annotations": annotations,
            },
            "spec": spec,
            "status": status,
        });
        TrainJobObject::decode(&object.to_string(), 1).unwrap()
    }

    #[test]
    fn only_what_the_controller_delays_is_measured() {
        let condition = |status: &str| {
            json!({"conditions": [{
                "type": "Suspended", "status": status, "reason": "r", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]})
        };
        let none = json!({});
        let failed = json!({"trainyard.dev/reconcile-error": "RuntimeNotFound: x"});
        let ran = json!({"jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]});
        let created = |text: &str| text.parse::<Timestamp>().unwrap();
        for (job, seconds) in [
            (job(&none, &none, &none), Some(32)),
            (job(&json!({"suspend": true}), &none, &none), None),
            (job(&none, &none, &condition("True")), None),
            (job(&none, &none, &condition("False")), None),
            (job(&none, &failed, &none), None),
            (job(&none, &none, &ran), None),
        ] {
            let delay = creation_delay(&job, created("2026-01-01T00:00:42Z"));
            assert_eq!(delay, seconds.map(Duration::from_secs), "{job:?}");
        }
        let earlier = created("2026-01-01T00:00:09Z");
        let delay = creation_delay(&job(&none, &none, &none), earlier);
        assert_eq!(delay, Some(Duration::ZERO));
    }
}

//! Errors of calls to the API server.

use kube::core::response::{StatusCause, reason};
use trainyard_api::names;

use super::ReconcileError;
use crate::{
    client::{NoAnswer, is_transient, no_answer, without_content},
    kubernetes::code,
};

/// The size above which an API server may need a long time to write a JobSet.
const LARGE_JOB_SET: usize = 256 << 10;

impl ReconcileError {
    /// Returns the error of writing a JobSet of that many bytes. A timeout of a large JobSet is not an outage: retrying it as often as in
    /// an outage would overload the API server.
    pub(crate) fn writing_job_set(name: &str, bytes: usize, problem: kube::Error) -> Self {
        match no_answer(&problem) {
            Some(NoAnswer { after, .. }) if bytes > LARGE_JOB_SET => Self::TooSlow {
                name: name.to_owned(),
                kib: bytes >> 10,
                after: *after,
            },
            _ => Self::api(format!("writing JobSet `{name}`"), problem),
        }
    }

    /// Returns the error of a call to the API server.
    pub(crate) fn api(what: impl Into<String>, problem: kube::Error) -> Self {
        let what = what.into();
        match code(&problem) {
            Some(409) if !is_of_webhook(&problem) => Self::Conflict { what },
            _ => Self::Api {
                what,
                problem: Box::new(without_content(problem)),
            },
        }
    }

    /// Whether the API server is unreachable or overloaded.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Api { problem, .. } if is_transient(problem))
    }

    /// Whether the API server is unreachable or overloaded for all TrainJobs. The error of a webhook concerns the objects that it is called
    /// for, and status 500 may come from a webhook that failed.
    pub(crate) fn is_cluster_wide(&self) -> bool {
        let is_of_webhook = matches!(self, Self::Api { problem, .. } if is_of_webhook(problem));
        self.is_outage() && !is_of_webhook && self.status() != Some(500)
    }

    /// Returns the HTTP status of the API server's answer, if it is an API error.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Api { problem, .. } => code(problem),
            _ => None,
        }
    }

    /// Whether the API server or a webhook rejected the request.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(self.status(), Some(400 | 403 | 422))
    }

    /// Whether an object that could not be created may exist: another controller may have created it, which may have used up a quota.
    pub(crate) fn may_exist(&self) -> bool {
        self.is_conflict() || matches!(self.status(), Some(400 | 403))
    }

    /// Whether another owner may have an object of that name, with fields of other managers or its own controller reference.
    pub(crate) fn is_contested(&self) -> bool {
        self.is_conflict() || self.status() == Some(422)
    }

    /// Whether JobSet rejected a change because its fields are immutable.
    pub(crate) fn is_immutable(&self) -> bool {
        matches!(self, Self::Api { problem, .. } if is_immutable(problem))
    }
}

/// Whether an admission webhook refused the call. It may do so with any status, and the API server puts this before its message
/// (`ToStatusErr` in k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
fn is_of_webhook(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.starts_with("admission webhook "))
}

/// Whether JobSet's schema or webhook rejected a change only because fields of the spec are immutable. Quotas, permissions and other
/// webhooks reject with other causes, and so does JobSet if a new JobSet would be invalid too.
fn is_immutable(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let Some(details) = &status.details else {
        return false;
    };
    let fixed = |cause: &StatusCause| {
        cause.field.starts_with("spec.") && cause.message.ends_with("is immutable")
    };
    status.code == 422
        && status.reason == reason::INVALID
        && (&*details.group, &*details.kind) == (names::JOB_SET_GROUP, names::JOB_SET)
        && !details.causes.is_empty()
        && details.causes.iter().all(fixed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn refused(code: u16, kind: &str, causes: &[(&str, &str)]) -> kube::Error {
        let cause = |(field, message): &(&str, &str)| json!({"field": field, "message": message});
        let causes: Vec<_> = causes.iter().map(cause).collect();
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": code, "reason": "Invalid",
            "details": {"group": "jobset.x-k8s.io", "kind": kind, "causes": causes},
        }))
        .unwrap();
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn only_fields_that_cannot_change_make_a_job_set_immutable() {
        let webhook = (
            "spec.replicatedJobs",
            "Invalid value: []: field is immutable",
        );
        let schema = (
            "spec.network",
            "Invalid value: \"object\": Value is immutable",
        );
        let owner = ("metadata.uid", "Invalid value: \"a\": field is immutable");
        let wrong = (
            "spec.replicatedJobs[0].replicas",
            "Invalid value: -1: must not be negative",
        );
        assert!(is_immutable(&refused(422, "JobSet", &[webhook, schema])));
        for (code, kind, causes) in [
            (422, "JobSet", &[] as &[_]),
            (422, "JobSet", &[webhook, wrong]),
            (422, "JobSet", &[owner]),
            (422, "Policy", &[webhook]),
            (403, "JobSet", &[webhook]),
        ] {
            let error = refused(code, kind, causes);
            assert!(!is_immutable(&error), "{error:?}");
        }
        let plain = Status::failure("spec.network: field is immutable", "Invalid");
        assert!(!is_immutable(&kube::Error::Api(
            plain.with_code(422).boxed()
        )));
    }

    #[test]
    fn refusing_webhooks_are_neither_conflicts_nor_outages() {
        let error = |code, message| {
            let status = Status::failure(message, "Denied").with_code(code);
            ReconcileError::api("writing JobSet `a`", kube::Error::Api(status.boxed()))
        };
        let of_webhook = "admission webhook \"a.example.com\" denied the request: no";
        assert_eq!(
            error(409, "the object has been modified").kind(),
            "conflict"
        );
        let refused = error(409, of_webhook);
        assert_eq!(refused.kind(), "api");
        assert!(refused.to_string().contains(of_webhook), "{refused}");
        for code in [429, 503] {
            assert!(error(code, "try again").is_cluster_wide());
            let of_one = error(code, of_webhook);
            assert!(of_one.is_outage() && !of_one.is_cluster_wide());
        }
    }

    #[test]
    fn a_large_job_set_that_is_not_answered_is_no_outage() {
        let error = |bytes| {
            let problem = kube::Error::Service(Box::new(NoAnswer {
                verb: "apply",
                path: "/".to_owned(),
                after: Duration::from_secs(10),
            }));
            ReconcileError::writing_job_set("a", bytes, problem)
        };
        assert!(error(LARGE_JOB_SET).is_outage());
        let large = error(LARGE_JOB_SET + 1);
        assert!(!large.is_outage() && !large.is_temporary());
        assert_eq!(large.kind(), "too_slow");
    }
}

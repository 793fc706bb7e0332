//! Reconciles in a simulated cluster: a table of all cases with the calls of each, and properties after any events.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod each_case_has_its_calls;
mod errors_are_annotated;
mod every_order_of_events;
mod interrupted_writes_are_repeated;
mod objects_change_as_their_modes_let;
mod warnings_are_reported_once_for_each_change;
mod world;

use k8s_openapi::jiff::Timestamp;
use kube::core::Status;
use serde_json::json;
use trainyard_model::object::{ApplyMode, ObjectKind, ObjectName};

use crate::{
    reconcile::{
        error::{ReconcileError, SnapshotError},
        object_ref::ObjectRef,
        start::JobFacts,
    },
    watch::{DesiredState, JobCounts, TrainJobStatus},
};

/// The time of all reconciles.
fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

/// A TrainJob that is to run and has no status yet.
fn job() -> JobFacts {
    JobFacts {
        name: "job".into(),
        uid: "job".into(),
        created: Timestamp::UNIX_EPOCH,
        deleting: false,
        desired: DesiredState {
            suspend: false,
            deadline: None,
            managed_by_us: true,
            not_supported: None,
        },
        status: TrainJobStatus::default(),
        error: None,
        fingerprint: 1,
    }
}

/// A TrainJob whose status shows that its JobSet has run.
fn that_ran() -> JobFacts {
    let mut job = job();
    job.status.jobs_status = counts(1).into();
    job
}

fn to_suspend(mut job: JobFacts) -> JobFacts {
    job.desired.suspend = true;
    job
}

/// The counts of a replicated job with so many active Jobs.
fn counts(active: i64) -> Box<[JobCounts]> {
    let counts = JobCounts {
        name: "node".to_owned(),
        active,
        ..JobCounts::default()
    };
    [counts].into()
}

/// An object beside the JobSet.
fn object(name: &str, apply: ApplyMode) -> ObjectRef {
    let kind = ObjectKind::new("v1", "ConfigMap").unwrap();
    ObjectRef {
        name: ObjectName::new(&kind, "a", format!("a-{name}")).unwrap(),
        kind,
        apply,
    }
}

/// The kinds of errors that decisions distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
    /// The runtime is missing.
    Input,
    /// The plan is pinned.
    Pinned,
    /// The snapshot cannot be used.
    Snapshot,
    /// Another owner has the object.
    Foreign,
    /// The API server does not serve the kind.
    NotServed,
    /// Another client changed the object concurrently.
    Conflict,
    /// Immutable fields of the JobSet would change.
    Immutable,
    /// The object is invalid.
    Invalid,
    /// The request is denied.
    Refused,
    /// The API server fails.
    Fails,
    /// The API server does not answer anyone.
    Unavailable,
}

/// Returns an error of that kind.
fn error(fault: Fault) -> ReconcileError {
    let text = || "a".to_owned();
    let api = |code: u16, details: serde_json::Value| {
        let status =
            json!({"status": "Failure", "code": code, "reason": "Invalid", "details": details});
        let status: Status = serde_json::from_value(status).unwrap();
        ReconcileError::api("calling", kube::Error::Api(status.boxed()))
    };
    match fault {
        Fault::Input => ReconcileError::NoRuntime {
            kind: text(),
            name: text(),
        },
        Fault::Pinned => ReconcileError::PlanIsPinned {
            pinned: text(),
            change: text(),
        },
        Fault::Snapshot => SnapshotError::unproven("job").into(),
        Fault::Foreign => ReconcileError::Foreign {
            kind: text(),
            name: text(),
            owner: text(),
        },
        Fault::NotServed => ReconcileError::NotServed {
            api_version: text(),
            kind: text(),
            name: text(),
        },
        Fault::Conflict => ReconcileError::Conflict { what: text() },
        Fault::Immutable => {
            let cause = json!({"field": "spec.network", "message": "field is immutable"});
            let group = "jobset.x-k8s.io";
            api(
                422,
                json!({"group": group, "kind": "JobSet", "causes": [cause]}),
            )
        }
        Fault::Invalid => api(422, json!({})),
        Fault::Refused => api(403, json!({})),
        Fault::Fails => api(500, json!({})),
        Fault::Unavailable => api(503, json!({})),
    }
}

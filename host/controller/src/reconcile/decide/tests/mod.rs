//! Decisions, without a cluster: a table of all cases, and a simulated cluster in which reconciles run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod each_case_has_one_decision;
mod errors_are_annotated;
mod objects_change_as_their_modes_let;
mod reconciles_end_where_they_should;
mod world;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use trainyard_model::object::{ApplyMode, ObjectKind, ObjectName};

use crate::{
    reconcile::{
        error::{AnnotationTiming, ErrorSummary},
        failure::{Class, ErrorId, ReconcileFailure},
        object_ref::ObjectRef,
        observed::{
            CachedJobSet, Effects, JobFacts, Observations, Observed, StoredJob, StoredJobSet,
        },
    },
    watch::{DesiredState, JobCounts, JobSetState, TrainJobStatus},
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

/// The counts of a replicated job with so many active Jobs.
fn counts(active: i64) -> Box<[JobCounts]> {
    let counts = JobCounts {
        name: "node".to_owned(),
        active,
        ..JobCounts::default()
    };
    [counts].into()
}

/// The TrainJob's JobSet.
fn job_set(suspended: bool) -> JobSetState {
    let mut job_set = JobSetState::for_tests(None, Box::default());
    job_set.owner = Some("job".into());
    job_set.suspended = suspended;
    job_set
}

/// The known state when a reconcile begins.
fn observed(job: JobFacts, found: Option<JobSetState>) -> Observed {
    let found = found.map(|found| StoredJobSet::Ours(Arc::new(found)));
    let cached = CachedJobSet {
        job_set: found.unwrap_or(StoredJobSet::Missing),
        deleted_job_set: None,
    };
    Observed {
        job: StoredJob::Found(Arc::new(job)),
        unreadable_job_set: None,
        initial: cached.clone(),
        current: cached,
        last: None,
        outdated: false,
        persists: false,
        annotated: None,
        observations: Observations::default(),
        effects: Effects::default(),
        failures: Vec::new(),
    }
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

fn failure(class: Class) -> ReconcileFailure {
    let error = ErrorId(0);
    let summary = ErrorSummary {
        reason: "Failed",
        text: format!("Failed: {class:?}").into(),
        annotated: match class {
            Class::Conflict => AnnotationTiming::OncePersistent,
            _ => AnnotationTiming::AtOnce,
        },
    };
    ReconcileFailure::Failed {
        error,
        class,
        summary,
    }
}

//! A table of all cases, with the next step and the reason for it.

mod ending;
mod running;
mod suspended;
mod without_a_job_set;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use trainyard_model::object::ApplyMode;

use super::{counts, failure, job, job_set, now, object, observed};
use crate::{
    reconcile::{
        decide::{Decision, Report, decide},
        failure::{Cause, Class, Finding, ReconcileFailure},
        inputs::Inputs,
        last_reconcile::{AppliedObject, LastReconcile},
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        observed::{
            JobFacts, LiveJobSet, ObjectState, Observed, OldJob, Owner, Placement, RenderedFacts,
            RenderedObjectFacts, Rendering, SnapshotFacts, SnapshotMarks, StoredJob, StoredJobSet,
        },
        step::{
            Action, Basis, InterestChange, MemoryUpdate, Observe, PlacementSource, Reason,
            RuntimeSource, SnapshotMark, Step,
        },
    },
    watch::{JobSetState, State as _},
};

/// What is expected of a case.
enum Expected {
    Observe(Observe, Reason),
    Act(Action, Reason),
    /// The reconcile updates the state in memory and ends.
    Ends,
    /// It updates the state in memory and fails.
    Fails(ReconcileFailure),
}

use Expected::{Act, Ends, Fails, Observe as Asks};

fn version(name: &str) -> ObjectVersion {
    ObjectVersion {
        uid: Some(name.into()),
        version: Some("7".into()),
    }
}

fn snapshot() -> SnapshotFacts {
    SnapshotFacts {
        at: version("snapshot"),
        was_started: false,
        started: false,
        recreate: false,
        trusted: true,
        has_plan: true,
        objects: Arc::default(),
    }
}

fn started_snapshot() -> SnapshotFacts {
    SnapshotFacts {
        was_started: true,
        started: true,
        ..snapshot()
    }
}

fn marks() -> SnapshotMarks {
    SnapshotMarks {
        at: version("snapshot"),
        foreign: None,
        started: false,
        recreate: false,
    }
}

fn live() -> LiveJobSet {
    LiveJobSet {
        at: version("live"),
        started: false,
        active: false,
        inputs: None,
        removed: false,
    }
}

fn rendered(objects: &[ObjectRef]) -> RenderedFacts {
    let objects = objects.iter().map(|object| RenderedObjectFacts {
        object: object.clone(),
        content: 1,
        has_keys: false,
        state: None,
        written: None,
    });
    RenderedFacts {
        saved: true,
        inputs: "inputs".into(),
        expires: false,
        objects: objects.collect(),
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

/// A suspended JobSet with the digest of its inputs.
fn waiting() -> JobSetState {
    let mut job_set = job_set(true);
    job_set.inputs = Some("inputs".into());
    job_set
}

/// A reconcile in which the TrainJob was read.
fn begun(job: JobFacts, found: Option<JobSetState>) -> Observed {
    let mut o = observed(job, found);
    (o.effects.begun, o.observations.train_job) = (true, Some(()));
    o.observations.live_train_job = Some(());
    o
}

fn with(mut o: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut o);
    o
}

fn failed(step: Step, class: Class) -> impl FnOnce(&mut Observed) {
    move |o| o.failures.push((step, failure(class)))
}

fn failed_runtime(o: &mut Observed) {
    failed(Step::Observe(Observe::Runtime), Class::Input)(o);
}

fn renders(o: &mut Observed, basis: Basis, facts: RenderedFacts) {
    o.observations
        .renderings
        .push((basis, Rendering::Rendered(facts)));
}

const FRESH: Basis = RuntimeSource::Runtime.basis(false);
const PINNED: Basis = RuntimeSource::Snapshot.started();
const KEPT: Basis = RuntimeSource::Snapshot.basis(false);

fn check(name: &str, mut o: Observed, expected: &Expected) {
    let decision = decide(&o, now());
    let next = |step: Step, reason| Decision::Next(step, reason);
    match expected {
        Asks(what, reason) => {
            assert_eq!(
                decision,
                next(Step::Observe(what.clone()), *reason),
                "{name}"
            );
        }
        Act(action, reason) => {
            assert_eq!(decision, next(Step::Act(action.clone()), *reason), "{name}");
        }
        Ends | Fails(_) => {
            let Decision::Next(Step::Act(Action::UpdateMemory(_)), Reason::Ends) = decision else {
                panic!("{name}: {decision:?}");
            };
            o.effects.memory_updated = true;
            o.effects.status_written = true;
            o.effects.error_written = true;
            let Decision::Done(end) = decide(&o, now()) else {
                panic!("{name}: it does not end");
            };
            let failure = match expected {
                Fails(failure) => Some(failure),
                _ => None,
            };
            assert_eq!(end.failure.as_ref(), failure, "{name}");
        }
    }
}

fn at(found: &JobSetState, fingerprint: u64, objects: Option<&[ObjectRef]>) -> LastReconcile {
    LastReconcile {
        uid: "job".into(),
        fingerprint,
        job_set: Some(found.version()),
        objects: objects.map(AppliedObject::unknown),
    }
}

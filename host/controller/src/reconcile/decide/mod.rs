//! The decisions of a reconcile: a pure function of the known state that returns the next step and the reason for it.
//!
//! Objects are written in this order, which is safe wherever a reconcile stops:
//!
//! 1. **The snapshot** ([`snapshot`]) pins the inputs of the JobSet before anything is created from them. Before the JobSet is suspended or
//!    recreated, the snapshot is marked as started; from then on, neither the snapshot nor the plan changes.
//! 2. **The objects beside the JobSet** ([`objects`]) are written as their modes allow. An object of another owner is an error, and is never
//!    changed. A Secret is created once and keeps its keys.
//! 3. **The JobSet** is applied over the version that was read if it has never run ([`create`], [`update`]). A JobSet that has run is frozen:
//!    only `spec.suspend` changes ([`suspend`]), and the placement of its pods when it is unsuspended ([`resume`]). Beside a running JobSet,
//!    missing objects are recreated and live objects are updated ([`running`]).
//! 4. **The status** is written ([`finish`]) even if another step failed; then a JobSet that is overdue is deleted. Last, an annotation shows
//!    the error until a reconcile succeeds.
//!
//! The functions read like the reconcile itself. A `?` on a fact that was not observed, or an action that was not taken, returns from the
//! function with the step that comes next. Once that step is taken, the next call continues behind the `?`.

mod create;
mod finish;
mod objects;
mod placement;
mod remember;
mod resume;
mod running;
mod snapshot;
mod suspend;
#[cfg(test)]
mod tests;
mod update;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::{
    failure::{Finding, ReconcileFailure},
    observed::{JobFacts, Observed, Owner, StoredJob, StoredJobSet},
    status,
    step::{Action, InterestChange, MemoryUpdate, Observe, Reason, Step},
};

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A step is taken, for a reason.
    Next(Step, Reason),
    /// The reconcile ends.
    Done(End),
}

/// How a reconcile ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// When the TrainJob has to be reconciled again even if nothing changes, such as at its deadline.
    pub(crate) requeue_after: Option<Duration>,
    /// What did not stop the reconcile: warnings for the TrainJob's author, and facts that are only logged.
    pub(crate) reports: Vec<Report>,
    /// Why the reconcile failed, if it did.
    pub(crate) failure: Option<ReconcileFailure>,
}

/// A problem that did not stop the reconcile. It is a warning for the TrainJob's author, unless it is only logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The warnings of the rendering.
    Rendering,
    /// A failure that did not stop the reconcile.
    Failure(ReconcileFailure),
    /// Live objects are not updated, because the plan is pinned. It is only logged.
    NotFollowed(ReconcileFailure),
    /// The annotation about the error could not be written or removed. It is only logged.
    NotAnnotated(ReconcileFailure),
    /// The JobSet is marked as started, but has the digest of its inputs like one that has never run.
    BothMarks,
}

/// Why a function of this module returned early.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pending {
    /// This step comes first.
    Step(Step, Option<Reason>),
    /// It failed.
    Failed(ReconcileFailure),
}

/// The result of a function of this module, or the step that comes first.
type Decided<T> = Result<T, Pending>;

/// The reports of a reconcile.
type Reports = Vec<Report>;

/// Decides the next step.
pub(crate) fn decide(o: &Observed, now: Timestamp) -> Decision {
    let job = match &o.job {
        StoredJob::Found(job) => job,
        StoredJob::Missing => {
            let all = MemoryUpdate {
                interests: InterestChange::Forget,
                forget_last: true,
                forget_deleted_job_set: true,
            };
            return finish::skip(o, all, None);
        }
        StoredJob::Unreadable(failure) => {
            // The state of an older version must not be used.
            let last = MemoryUpdate {
                forget_last: true,
                ..MemoryUpdate::default()
            };
            return finish::skip(o, last, Some(failure));
        }
    };
    if !job.desired.managed_by_us {
        let interests = MemoryUpdate {
            interests: InterestChange::Forget,
            ..MemoryUpdate::default()
        };
        return finish::skip(o, interests, None);
    }
    if let Some(failure) = &o.unreadable_job_set {
        return finish::refuse(o, job, failure, now);
    }
    let status = finish::status(job, &o.initial, job.desired.suspend, now);
    let has_ended = status::end(&status).is_some() || job.desired.not_supported.is_some();
    let outcome = if has_ended {
        Ok(Reports::new())
    } else {
        reconcile_job_set(o, job, now)
    };
    match outcome {
        Ok(reports) => finish::finish(o, job, has_ended, Ok(reports), now),
        Err(Pending::Failed(failure)) => finish::finish(o, job, has_ended, Err(failure), now),
        Err(Pending::Step(step, reason)) => Decision::Next(step, reason.unwrap_or(Reason::Ends)),
    }
}

/// Reconciles the JobSet of a TrainJob that has not ended.
fn reconcile_job_set(o: &Observed, job: &JobFacts, now: Timestamp) -> Decided<Reports> {
    let suspend = job.desired.suspend;
    match &o.initial.job_set {
        // It is reported if it lasts.
        StoredJobSet::Ours(found) if found.deleting => Err(Pending::Failed(
            ReconcileFailure::Blocked(Finding::JobSetIsDeleted {
                finalizers: found.finalizers.clone(),
                is_recreated: !job.deleting,
            }),
        )),
        StoredJobSet::Ours(found) if !found.suspended && suspend => {
            suspend::suspend(o, found).because(Reason::ToSuspend)
        }
        // A finalizer may keep the TrainJob and its JobSet for a long time.
        _ if job.deleting => Ok(Reports::new()),
        StoredJobSet::Ours(found) if !found.suspended => {
            running::maintain(o, job, found, now).because(Reason::Running)
        }
        StoredJobSet::Ours(found) => update::update_or_resume(o, job, found),
        StoredJobSet::Missing => create::create(o, job).because(Reason::NoJobSet),
        // It must not be taken for a missing one.
        StoredJobSet::Unreadable => Ok(Reports::new()),
        StoredJobSet::Foreign => {
            let owner = o.known(&o.observations.owner, || Observe::JobSetOwner);
            let owner = owner.because(Reason::ForeignJobSet)?;
            Err(Pending::Failed(match owner {
                Owner::Foreign(failure) => failure.clone(),
                Owner::OursOrGone => ReconcileFailure::Blocked(Finding::StaleJobSet),
            }))
        }
    }
}

impl Observed {
    /// Returns the fact, or the observation that is needed for it. Fails if the observation failed.
    fn known<'a, T>(&self, fact: &'a Option<T>, what: impl FnOnce() -> Observe) -> Decided<&'a T> {
        self.known_or_failure(fact, what)?.map_err(Pending::Failed)
    }

    /// Returns the fact or the failure of its observation, or else the observation.
    fn known_or_failure<'a, T>(
        &self,
        fact: &'a Option<T>,
        what: impl FnOnce() -> Observe,
    ) -> Decided<Result<&'a T, ReconcileFailure>> {
        match fact {
            Some(fact) => Ok(Ok(fact)),
            None => self.failed(Step::Observe(what())).map(Err),
        }
    }

    /// Returns the action if it was not tried, and its failure otherwise.
    fn act<T>(&self, action: Action) -> Decided<T> {
        Err(Pending::Failed(self.failure_of(action)?))
    }

    /// Returns the failure of the action, or the action if it was not tried.
    fn failure_of(&self, action: Action) -> Decided<ReconcileFailure> {
        self.failed(Step::Act(action))
    }

    fn failed(&self, step: Step) -> Decided<ReconcileFailure> {
        let mut failures = self.failures.iter();
        match failures.find(|(of, _)| *of == step) {
            Some((_, failure)) => Ok(failure.clone()),
            None => Err(Pending::Step(step, None)),
        }
    }

    /// Starts to register interests before the first observation.
    fn begin(&self) -> Decided<()> {
        if self.effects.begun {
            return Ok(());
        }
        self.act(Action::Begin)
    }
}

/// Adds the reason for a step, unless it has a more specific one.
trait Because {
    fn because(self, reason: Reason) -> Self;
}

impl<T> Because for Decided<T> {
    fn because(self, reason: Reason) -> Self {
        self.map_err(|pending| match pending {
            Pending::Step(step, None) => Pending::Step(step, Some(reason)),
            pending => pending,
        })
    }
}

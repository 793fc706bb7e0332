//! The decisions of a reconcile: a pure function of the known state that returns the next step and the reason for it.
//!
//! The order in which things are written, which is safe wherever a reconcile stops:
//!
//! 1. **The snapshot** ([`snapshot`]): what the JobSet is rendered from is pinned before anything is created from it. Before the JobSet
//!    is suspended or created again, the snapshot says that it has run; from then on neither snapshot nor plan change.
//! 2. **The objects beside the JobSet** ([`objects`]), each as its mode lets. One that another owner has is refused, never changed. A
//!    Secret is created once and keeps its keys.
//! 3. **The JobSet** ([`create`], [`update`]), applied over the version that was read, if it has never run. One that has run is frozen:
//!    of it only `spec.suspend` changes ([`suspend`]), and the placement of its pods when it is unsuspended ([`resume`]). Beside one
//!    that runs, missing objects are created again and live objects follow ([`running`]).
//! 4. **The status** ([`finish`]), whatever kept the rest from being done; then a JobSet that is overdue is deleted. Last, an annotation
//!    says what kept the rest from being done, until a reconcile succeeds.
//!
//! The functions here read like the reconcile itself. Each `?` behind something that is not known, or not done, ends the function with
//! the step that comes next; once that step was taken, the next call gets past it.

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
    /// After how long the TrainJob has to be looked at again, if time alone changes it.
    pub(crate) again: Option<Duration>,
    /// Warnings for the TrainJob's author.
    pub(crate) reports: Vec<Report>,
    /// Why the reconcile failed, if it did.
    pub(crate) failure: Option<ReconcileFailure>,
}

/// Something that the author of a TrainJob should know, although the reconcile went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The warnings of the rendering.
    Rendering,
    /// A failure that the reconcile went on without.
    Failure(ReconcileFailure),
    /// Live objects can't follow, since the plan is pinned: worth a line in the log.
    NotFollowed(ReconcileFailure),
    /// The annotation about the error could not be written or removed: worth a line in the log.
    NotAnnotated(ReconcileFailure),
    /// The JobSet says both that it has run and what it was rendered from, as only one does that has never run.
    BothMarks,
}

/// Why a function of this module did not get to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pending {
    /// This step comes first.
    Step(Step, Option<Reason>),
    /// It can't.
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
        reconcile_job_set(o, job)
    };
    match outcome {
        Ok(reports) => finish::finish(o, job, has_ended, Ok(reports), now),
        Err(Pending::Failed(failure)) => finish::finish(o, job, has_ended, Err(failure), now),
        Err(Pending::Step(step, reason)) => Decision::Next(step, reason.unwrap_or(Reason::Ends)),
    }
}

/// Reconciles the JobSet of a TrainJob that has not ended.
fn reconcile_job_set(o: &Observed, job: &JobFacts) -> Decided<Reports> {
    let suspend = job.desired.suspend;
    match &o.initial.job_set {
        StoredJobSet::Ours(found) if found.deleting => Ok(Reports::new()),
        StoredJobSet::Ours(found) if !found.suspended && suspend => {
            suspend::suspend(o, found).because(Reason::ToSuspend)
        }
        // A finalizer may keep the TrainJob for long, and its JobSet with it.
        _ if job.deleting => Ok(Reports::new()),
        StoredJobSet::Ours(found) if !found.suspended => {
            running::maintain(o, job, found).because(Reason::Running)
        }
        StoredJobSet::Ours(found) => update::update(o, job, found),
        StoredJobSet::Missing => create::create(o, job).because(Reason::NoJobSet),
        // It would look like one that is missing.
        StoredJobSet::Unreadable => Ok(Reports::new()),
        StoredJobSet::Foreign => {
            let owner = o.known(&o.observations.owner, || Observe::JobSetOwner);
            let owner = owner.because(Reason::ForeignJobSet)?;
            Err(Pending::Failed(match owner {
                Owner::Foreign(failure) => failure.clone(),
                Owner::OursOrGone => ReconcileFailure::Found(Finding::StaleJobSet),
            }))
        }
    }
}

impl Observed {
    /// The fact, or the observation that finds it out; if that failed, so does this.
    fn known<'a, T>(&self, fact: &'a Option<T>, what: impl FnOnce() -> Observe) -> Decided<&'a T> {
        self.tried(fact, what)?.map_err(Pending::Failed)
    }

    /// The fact or why it could not be found out, or the observation that tries to.
    fn tried<'a, T>(
        &self,
        fact: &'a Option<T>,
        what: impl FnOnce() -> Observe,
    ) -> Decided<Result<&'a T, ReconcileFailure>> {
        match fact {
            Some(fact) => Ok(Ok(fact)),
            None => self.failed(Step::Observe(what())).map(Err),
        }
    }

    /// Fails if the action failed, and is that action if it was not tried.
    fn act<T>(&self, action: Action) -> Decided<T> {
        Err(Pending::Failed(self.attempted(action)?))
    }

    /// Why the action failed, or that action if it was not tried.
    fn attempted(&self, action: Action) -> Decided<ReconcileFailure> {
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

/// Says why a step comes next, unless that is known more exactly.
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

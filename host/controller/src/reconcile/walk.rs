//! One reconcile of one TrainJob: the loop of decisions and steps.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use trainyard_api::names;

use super::{
    act::act,
    artifacts::Artifacts,
    context::Context,
    decide::{Decision, End, Report, decide},
    error::ReconcileError,
    failure::ReconcileFailure,
    observe::observe,
    observed::{CachedJobSet, Effects, JobFacts, Observations, Observed, StoredJob, StoredJobSet},
    reconciler::Reconciler,
    step::{Reason, Step},
    vouch::Voucher,
};
use crate::{
    annotations::{INPUTS, STARTED},
    fair::Worker,
    log_shares::AllowedLine,
    queue::NamespacedName,
    watch::{TrainJobState, UnreadableObject},
};

/// How long reconciles may fail because of a temporary condition before it is reported.
pub(crate) const TEMPORARY: Duration = Duration::from_secs(60);

/// The result of a reconcile.
#[derive(Debug)]
pub struct ReconcileOutcome {
    /// When the TrainJob has to be reconciled again, such as at its deadline.
    pub requeue_after: Option<Duration>,
    /// Warnings for the TrainJob's author.
    pub warnings: Vec<String>,
    /// Why it failed, if it did.
    pub result: Result<(), ReconcileError>,
}

impl Reconciler {
    /// Reconciles a TrainJob whose reconciles have been failing for that long.
    pub(crate) async fn reconcile(
        &self,
        key: &NamespacedName,
        worker: &Worker,
        failing_for: Duration,
    ) -> ReconcileOutcome {
        let mut walk = Walk::begin(self, key, worker, Timestamp::now());
        walk.observed.persists = failing_for >= TEMPORARY;
        let mut steps = 0;
        loop {
            match decide(&walk.observed, walk.context.now) {
                Decision::Done(end) => return walk.end(end),
                Decision::Next(..) if steps > walk.observed.most_steps() => {
                    return walk.endless(steps);
                }
                Decision::Next(step, reason) => walk.take(&step, reason).await,
            }
            steps += 1;
        }
    }

    /// Returns the state of a TrainJob in the stores.
    fn cached(&self, key: &NamespacedName, uid: &str) -> CachedJobSet {
        // The order matters: a deleted JobSet is noted before it is missing from the store, and a JobSet that becomes unreadable during the
        // lookup must not be taken for a missing one.
        let job_sets = &self.stores.job_sets;
        let was_unreadable = job_sets.unreadable(key).is_some();
        let found = job_sets.get(key);
        let job_set = match found {
            _ if was_unreadable || job_sets.unreadable(key).is_some() => StoredJobSet::Unreadable,
            None => StoredJobSet::Missing,
            Some(found) if found.owner.as_deref() == Some(uid) => StoredJobSet::Ours(found),
            Some(_) => StoredJobSet::Foreign,
        };
        let deleted_job_set = self.deleted_job_sets.of(key, uid);
        CachedJobSet {
            job_set,
            deleted_job_set,
        }
    }
}

/// A running reconcile.
struct Walk<'a> {
    context: Context<'a>,
    artifacts: Artifacts,
    observed: Observed,
}

impl<'a> Walk<'a> {
    fn begin(
        reconciler: &'a Reconciler,
        key: &'a NamespacedName,
        worker: &'a Worker,
        now: Timestamp,
    ) -> Self {
        let stores = &reconciler.stores;
        let mut artifacts = Artifacts::default();
        let unreadable = stores.jobs.unreadable(key);
        let job = match unreadable {
            Some(_) => None,
            None => stores.jobs.get(key),
        };
        let stored = match (&unreadable, &job) {
            (Some(job), _) => {
                let error = unreadable_error(names::TRAIN_JOB, key, job);
                StoredJob::Unreadable(artifacts.failure(error))
            }
            (None, None) => StoredJob::Missing,
            (None, Some(job)) => StoredJob::Found(Arc::new(JobFacts::of(&key.name, job))),
        };
        let uid = job.as_ref().map_or("", |job| &job.uid);
        let initial = reconciler.cached(key, uid);
        let unreadable = match (&initial.job_set, stores.job_sets.unreadable(key)) {
            (_, Some(job_set)) => Some(unreadable_error(names::JOB_SET, key, &job_set)),
            // It has become readable in the meantime.
            (StoredJobSet::Unreadable, None) => Some(ReconcileError::Conflict {
                what: format!("JobSet `{}`", key.name),
            }),
            (_, None) => None,
        };
        let unreadable_job_set = unreadable.map(|error| artifacts.failure(error));
        let last = reconciler.last().get(key).cloned();
        let annotated = reconciler.annotated().get(key).cloned();
        let voucher = Voucher::of(&initial);
        let is_missing = matches!(initial.job_set, StoredJobSet::Missing);
        Self {
            observed: Observed {
                job: stored,
                unreadable_job_set,
                current: initial.clone(),
                initial,
                last: last.filter(|last| *last.uid == *uid),
                outdated: reconciler.interests.is_outdated(key),
                persists: false,
                annotated: annotated.filter(|last| *last.uid == *uid),
                observations: Observations::default(),
                effects: Effects::default(),
                failures: Vec::new(),
            },
            context: Context {
                reconciler,
                key,
                worker,
                now,
                voucher,
                deleted_job_set: reconciler.deleted_job_sets.last(key).filter(|_| is_missing),
                job,
            },
            artifacts,
        }
    }

    /// Takes a step and notes its result.
    async fn take(&mut self, step: &Step, reason: Reason) {
        let Self {
            context,
            artifacts,
            observed,
        } = self;
        tracing::debug!(?step, %reason, "performing the next step");
        match step {
            Step::Observe(what) => {
                let found = observe(context, artifacts, what).await;
                let found = found.map_err(|error| artifacts.failure(error));
                observed.learn_fact(what, found);
            }
            Step::Act(action) => {
                let left = act(context, artifacts, action).await;
                let left = left.map_err(|error| artifacts.failure(error));
                observed.learn_effect(action, left);
            }
        }
        if let Some(TrainJobState { uid, .. }) = context.job.as_deref() {
            observed.current = context.reconciler.cached(context.key, uid);
        }
    }

    /// Ends a reconcile with too many steps.
    fn endless(self, steps: usize) -> ReconcileOutcome {
        let failures = self.observed.failures.len();
        let why = format!("it did not finish within {steps} steps, of which {failures} failed");
        ReconcileOutcome {
            requeue_after: None,
            warnings: Vec::new(),
            result: Err(ReconcileError::Internal(why)),
        }
    }

    fn end(mut self, end: End) -> ReconcileOutcome {
        let mut warnings = Vec::new();
        for report in end.reports {
            match report {
                Report::Rendering => warnings.append(&mut self.artifacts.warnings),
                Report::Failure(failure) => warnings.push(self.error(failure).to_string()),
                Report::NotFollowed(failure) => {
                    let error = self.error(failure);
                    if let Some(AllowedLine { left_out }) = self.log_line() {
                        tracing::info!(%error, left_out, "live objects are left unchanged");
                    }
                }
                Report::NotAnnotated(failure) => {
                    let error = self.error(failure);
                    let annotated = &self.observed.annotated;
                    if annotated.as_ref().is_some_and(|last| last.failed) {
                        tracing::debug!(%error, "the TrainJob's annotation {} is still outdated", names::ERROR_ANNOTATION);
                    } else if let Some(AllowedLine { left_out }) = self.log_line() {
                        tracing::warn!(%error, left_out, "the TrainJob's annotation {} is outdated", names::ERROR_ANNOTATION);
                    }
                }
                Report::BothMarks => warnings.push(format!(
                    "JobSet `{}`: metadata.annotations: has {STARTED}, which only the controller sets, beside {INPUTS}, so it is treated as one that has run and does not follow the TrainJob; delete the JobSet to have it recreated",
                    self.context.key.name
                )),
            }
        }
        let failure = end.failure.map(|failure| self.error(failure));
        ReconcileOutcome {
            requeue_after: end.requeue_after,
            warnings,
            result: failure.map_or(Ok(()), Err),
        }
    }

    /// Returns a line that may be written about the TrainJob, if its namespace has not used up its share of the log.
    fn log_line(&self) -> Option<AllowedLine> {
        let Context {
            reconciler, key, ..
        } = &self.context;
        reconciler.log.allow(&key.namespace)
    }

    /// Returns the error of a failure.
    fn error(&mut self, failure: ReconcileFailure) -> ReconcileError {
        match failure {
            ReconcileFailure::Failed { error, .. } => {
                let taken = ReconcileError::out_of_order("an error");
                self.artifacts.take_error(error).unwrap_or(taken)
            }
            ReconcileFailure::Blocked(finding) => finding.error(&self.context.key.name),
        }
    }
}

/// Returns the error of an object that cannot be decoded.
fn unreadable_error(
    kind: &'static str,
    key: &NamespacedName,
    object: &UnreadableObject,
) -> ReconcileError {
    ReconcileError::Unreadable {
        kind,
        name: key.name.to_string(),
        why: object.why.to_string(),
    }
}

//! One reconcile of one TrainJob, from the stores to its result.

use std::{sync::Arc, time::Duration};

use trainyard_api::names;

use super::{
    error::ReconcileError,
    flow::{End, Flow, Report},
    live_cluster::LiveCluster,
    reconciler::Reconciler,
    start::{Start, StoredJobSet},
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

impl ReconcileOutcome {
    /// Returns the result of a reconcile that changed nothing in the cluster.
    fn unchanged(result: Result<(), ReconcileError>) -> Self {
        Self {
            requeue_after: None,
            warnings: Vec::new(),
            result,
        }
    }
}

impl Reconciler {
    /// Reconciles a TrainJob whose reconciles have been failing for that long.
    pub(crate) async fn reconcile(
        &self,
        key: &NamespacedName,
        worker: &Worker,
        failing_for: Duration,
    ) -> ReconcileOutcome {
        let job = match self.managed(key) {
            Ok(Some(job)) => job,
            Ok(None) => return ReconcileOutcome::unchanged(Ok(())),
            Err(error) => return ReconcileOutcome::unchanged(Err(error)),
        };
        let start = Start::of(self, key, &job, failing_for >= TEMPORARY);
        let unreadable = self.unreadable_job_set(key, &start);
        let mut cluster = LiveCluster::new(self, key, worker, job, &start.job_set, start.now);
        let flow = Flow::new(&mut cluster, &start);
        let end = match unreadable {
            Some(error) => flow.refuse(error).await,
            None => flow.run().await,
        };
        self.outcome(key, &start, end)
    }

    /// Returns the TrainJob in the store. What is known of any other than one that this controller manages is forgotten.
    fn managed(&self, key: &NamespacedName) -> Result<Option<Arc<TrainJobState>>, ReconcileError> {
        let jobs = &self.stores.jobs;
        if let Some(unreadable) = jobs.unreadable(key) {
            // The state of an older version must not be used.
            self.last().remove(key);
            return Err(unreadable_error(names::TRAIN_JOB, key, &unreadable));
        }
        let Some(job) = jobs.get(key) else {
            self.interests.forget(key);
            self.last().remove(key);
            self.deleted_job_sets.forget(key);
            return Ok(None);
        };
        if !job.desired.managed_by_us {
            self.interests.forget(key);
            return Ok(None);
        }
        Ok(Some(job))
    }

    /// Returns why the JobSet cannot be decoded. Then nothing is changed.
    fn unreadable_job_set(&self, key: &NamespacedName, start: &Start) -> Option<ReconcileError> {
        match (&start.job_set.job_set, self.stores.job_sets.unreadable(key)) {
            (_, Some(job_set)) => Some(unreadable_error(names::JOB_SET, key, &job_set)),
            // It has become readable in the meantime.
            (StoredJobSet::Unreadable, None) => Some(ReconcileError::changed_job_set(&key.name)),
            (_, None) => None,
        }
    }

    /// Returns the warnings of a reconcile that ended so, and logs its other reports.
    fn outcome(&self, key: &NamespacedName, start: &Start, end: End) -> ReconcileOutcome {
        let mut warnings = Vec::new();
        for report in end.reports {
            match report {
                Report::Rendering(warning) => warnings.push(warning),
                Report::Error(error) => warnings.push(error.to_string()),
                Report::NotFollowed(error) => {
                    if let Some(AllowedLine { left_out }) = self.log.allow(&key.namespace) {
                        tracing::info!(%error, left_out, "live objects are left unchanged");
                    }
                }
                Report::NotAnnotated(error) => {
                    let annotated = start.annotated.as_ref();
                    if annotated.is_some_and(|last| last.failed) {
                        tracing::debug!(%error, "the TrainJob's annotation {} is still outdated", names::ERROR_ANNOTATION);
                    } else if let Some(AllowedLine { left_out }) = self.log.allow(&key.namespace) {
                        tracing::warn!(%error, left_out, "the TrainJob's annotation {} is outdated", names::ERROR_ANNOTATION);
                    }
                }
                Report::BothMarks => warnings.push(format!(
                    "JobSet `{}`: metadata.annotations: has {STARTED}, which only the controller sets, beside {INPUTS}, so it is treated as one that has run and does not follow the TrainJob; delete the JobSet to have it recreated",
                    key.name
                )),
            }
        }
        ReconcileOutcome {
            requeue_after: end.requeue_after,
            warnings,
            result: end.error.map_or(Ok(()), Err),
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

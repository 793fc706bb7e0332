//! The reconcile of a TrainJob: straight-line code that calls a [`Cluster`].
//!
//! Objects are written in this order, which is safe wherever a reconcile stops:
//!
//! 1. **The snapshot** ([`known_snapshot`], [`choose`]) pins the inputs of the JobSet before anything is created from them. Before the JobSet
//!    is suspended or recreated, the snapshot is marked as started; from then on, neither the snapshot nor the plan changes.
//! 2. **The objects beside the JobSet** ([`write`]) are written as their modes allow. An object of another owner is an error, and is never
//!    changed. A Secret is created once and keeps its keys.
//! 3. **The JobSet** is applied over the version that was read if it has never run ([`create`], [`update`]). A JobSet that has run is frozen:
//!    only `spec.suspend` changes ([`suspend`]), and the placement of its pods when it is unsuspended ([`resume`], [`place`]). Beside a
//!    running JobSet, missing objects are recreated and live objects are updated ([`maintain`]).
//! 4. **The status** is written ([`finish`]) even if another step failed; then a JobSet that is overdue is deleted. Last, an annotation shows
//!    the error until a reconcile succeeds ([`annotate`]).

mod annotate;
mod choose;
mod create;
mod finish;
mod known_snapshot;
mod maintain;
mod place;
mod render;
mod resume;
mod suspend;
#[cfg(test)]
mod tests;
mod update;
mod write;

use std::sync::Arc;

use known_snapshot::KnownSnapshot;

use super::{
    cluster::{Cluster, Result, Values},
    error::ReconcileError,
    facts::{Owner, RenderedFacts, SnapshotFacts, SuspendedFacts, WithFacts},
    last_reconcile::{AppliedObject, LastReconcile},
    outcome::{ReconcileOutcome, Report},
    start::{JobFacts, Start, StoredJobSet},
    status,
};
use crate::watch::{JobSetState, State as _};

/// A snapshot with its facts.
type Snapshot<C> = WithFacts<SnapshotFacts, <C as Values>::Snapshot>;

/// A rendering with its facts.
type Rendering<C> = WithFacts<RenderedFacts, <C as Values>::Rendering>;

/// A suspended JobSet with its facts.
type SuspendedJobSet<C> = WithFacts<SuspendedFacts, <C as Values>::JobSet>;

/// A reconcile of a TrainJob.
pub(crate) struct Flow<'a, C: Cluster> {
    cluster: &'a mut C,
    start: &'a Start,
    snapshot: KnownSnapshot<C::Snapshot>,
    /// The problems so far that did not stop it.
    reports: Vec<Report>,
}

impl<'a, C: Cluster> Flow<'a, C> {
    /// Returns a reconcile that has done nothing yet.
    pub(crate) fn new(cluster: &'a mut C, start: &'a Start) -> Self {
        Self {
            cluster,
            start,
            snapshot: KnownSnapshot::Nothing,
            reports: Vec::new(),
        }
    }

    /// Reconciles the TrainJob.
    pub(crate) async fn run(mut self) -> ReconcileOutcome {
        let Start { job, now, .. } = self.start;
        let status = finish::status(job, &self.start.job_set, job.desired.suspend, *now);
        let has_ended = status::end(&status).is_some() || job.desired.not_supported.is_some();
        let result = if has_ended {
            Ok(())
        } else {
            self.reconcile_job_set().await
        };
        self.finish(has_ended, result).await
    }

    /// Reconciles the JobSet of a TrainJob that has not ended.
    async fn reconcile_job_set(&mut self) -> Result<()> {
        let Start { job, job_set, .. } = self.start;
        match &job_set.stored {
            // It is reported if it lasts.
            StoredJobSet::Ours(found) if found.deleting => {
                let (name, finalizers) = (&job.name, &found.finalizers);
                Err(ReconcileError::job_set_deleting(
                    name,
                    finalizers,
                    !job.deleting,
                ))
            }
            StoredJobSet::Ours(found) if !found.suspended && job.desired.suspend => {
                because("the TrainJob is to be suspended and its JobSet runs");
                self.suspend(found).await
            }
            // A finalizer may keep the TrainJob and its JobSet for a long time.
            _ if job.deleting => Ok(()),
            StoredJobSet::Ours(found) if !found.suspended => self.maintain(found).await,
            StoredJobSet::Ours(found) => self.update_or_resume(found).await,
            StoredJobSet::Missing => {
                because("the TrainJob has no JobSet");
                self.create().await
            }
            StoredJobSet::NotOurs => {
                because("the JobSet of this name does not belong to the TrainJob");
                Err(match self.cluster.job_set_owner().await? {
                    Owner::Foreign(error) => error,
                    Owner::OursOrGone => ReconcileError::stale_job_set(&job.name),
                })
            }
        }
    }

    /// Reports an error that does not stop the reconcile.
    fn report(&mut self, error: ReconcileError) {
        self.reports.push(Report::Error(error));
    }

    /// Remembers that everything is up to date as of the current version of the JobSet.
    fn remember(&mut self, objects: Option<Arc<[AppliedObject]>>) {
        let job_set = self.cluster.job_set_now();
        self.remember_at(job_set.ours(), objects);
    }

    /// Remembers that everything is up to date as of the version of the JobSet at which the objects were checked, so that the next reconcile
    /// can skip what has not changed.
    fn remember_at(
        &mut self,
        job_set: Option<&JobSetState>,
        objects: Option<Arc<[AppliedObject]>>,
    ) {
        let JobFacts {
            uid, fingerprint, ..
        } = &self.start.job;
        self.cluster.remember(LastReconcile {
            uid: uid.clone(),
            fingerprint: *fingerprint,
            common: self.start.common.clone(),
            job_set: job_set.map(JobSetState::version),
            objects,
        });
    }
}

/// Logs why the next calls are made.
fn because(reason: &'static str) {
    tracing::debug!(reason, "reconciling");
}

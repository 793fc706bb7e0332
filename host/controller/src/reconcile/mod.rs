//! The reconcile of a TrainJob: computing the desired state, and writing it in an order that is safe at any interruption.
//!
//! A reconcile begins in [`Reconciler::reconcile`], below, and continues in [`flow`], as straight-line code. It accesses the cluster only
//! through a trait ([`cluster`]) with one method for each call, so it runs on the API server ([`live_cluster`], one file per kind of
//! object) and in a simulated cluster (`flow/tests/world`). In these files, the reference is the Kubeflow Trainer.
//!
//! The plugins are those of the generation that it pins when it begins ([`crate::generation`]). They decide only for TrainJobs that have not
//! started; any other one is rendered with the generation that keeps its plan (`live_cluster/rendering.rs`).
//!
//! A TrainJob passes through these files:
//!
//! 1. **The stores** have the desired state of the TrainJob, the state of its JobSet, and the result of the last reconcile (`start.rs`,
//!    `reconciler.rs`, `last_reconcile.rs`). Most reconciles end here, because nothing has changed.
//! 2. **Without a JobSet** (`flow/create.rs`), the TrainJob is read (`live_cluster/train_jobs.rs`) and rendered from its current runtime
//!    (`flow/render.rs`, `live_cluster/runtimes.rs`, `live_cluster/rendering.rs`, `live_cluster/lookups.rs`, `fetch.rs`, `defaults.rs`). If
//!    it had a JobSet before, the API server first has to confirm that it is current. Its snapshot is created (`flow/known_snapshot.rs`, `snapshot`,
//!    `live_cluster/config_maps.rs`), then the objects beside the JobSet (`flow/write.rs`, `live_cluster/objects.rs`, `object_ref.rs`), then
//!    the JobSet (`live_cluster/job_sets.rs`). A JobSet that has run is recreated only if it did not end before it was deleted
//!    (`deleted_job_sets.rs`).
//! 3. **A suspended JobSet that has never run** is read and updated (`flow/choose.rs`, `flow/update.rs`): the objects first, then the
//!    JobSet. The digest of the inputs shows whether it is up to date (`inputs.rs`).
//! 4. **A suspended JobSet that has run** is frozen. When it is unsuspended (`flow/resume.rs`, `job_set.rs`), its pods get the current
//!    placement (`placement`, `flow/place.rs`, `live_cluster/placements.rs`). Jobs with an earlier placement are deleted
//!    (`live_cluster/jobs.rs`).
//! 5. **A running JobSet** is suspended if the TrainJob is (`flow/suspend.rs`). Otherwise, the objects beside it are checked if it or the
//!    TrainJob has changed (`flow/maintain.rs`), and while it may lack pods, it is checked whether they can be created
//!    (`live_cluster/creation.rs`).
//! 6. **In every case**, the status is written (`flow/finish.rs`, `status.rs`), a JobSet that is overdue is deleted, and an annotation shows
//!    why the TrainJob cannot be reconciled (`flow/annotate.rs`). The result is remembered in memory (`live_cluster/memory.rs`), and
//!    warnings become Events (`outcome.rs`).
//!
//! `facts.rs` has what the calls of [`cluster`] return. `vouch.rs` says which snapshots are trusted. `owner.rs` and `object_version.rs`
//! protect writes against objects of other owners and against concurrent changes. `explained.rs` reads a TrainJob for `trainyard explain`, `dry_run.rs` checks one for admission, and
//! `shadow.rs` compares one in the shadow mode.
//!
//! [`flow`] documents why this order is safe.

mod cluster;
mod creation_delay;
mod defaults;
mod deleted_job_sets;
mod dry_run;
mod error;
mod explained;
mod facts;
mod fetch;
mod flow;
mod inputs;
mod job_set;
mod last_reconcile;
mod live_cluster;
mod object_ref;
mod object_version;
mod outcome;
pub(crate) mod owner;
mod placement;
mod reconciler;
mod shadow;
mod snapshot;
mod start;
pub(crate) mod status;
mod trial;
mod vouch;

use std::{sync::Arc, time::Duration};

pub(crate) use dry_run::{DryRun, DryRunResult};
pub(crate) use error::{Blame, NOT_CREATED, StoppedBy, WAITS};
pub use error::{ReconcileError, SnapshotError};
pub use explained::{Live, LiveError, live, live_job_set};
use flow::Flow;
use live_cluster::LiveCluster;
pub use live_cluster::MANAGER;
pub(crate) use live_cluster::{creating, merging};
pub use object_ref::ObjectRef;
use outcome::Report;
pub(crate) use outcome::{ReconcileOutcome, waits};
pub use reconciler::{Reconciler, Stores};
pub use snapshot::Snapshot;
use start::{KnownJobSet, Start};
use trainyard_api::names;
pub(crate) use trial::Acceptance;

use crate::{
    fair::Worker,
    generation::Pinned,
    log_shares::AllowedLine,
    queue::NamespacedName,
    watch::{TrainJobState, UnreadableObject},
};

/// How long reconciles may fail because of a temporary condition before it is reported.
pub(crate) const TEMPORARY: Duration = Duration::from_secs(60);

impl Reconciler {
    /// Reconciles a TrainJob whose reconciles have been failing for that long, with the plugins of a generation.
    pub(crate) async fn reconcile(
        &self,
        key: &NamespacedName,
        worker: &Worker,
        pinned: Pinned,
        failing_for: Duration,
    ) -> ReconcileOutcome {
        let job = match self.managed(key) {
            Ok(Some(job)) => job,
            Ok(None) => return ReconcileOutcome::default(),
            Err(error) => {
                return ReconcileOutcome {
                    error: Some(error),
                    ..ReconcileOutcome::default()
                };
            }
        };
        let start = Start::of(
            self,
            key,
            &job,
            pinned.generation(),
            failing_for >= TEMPORARY,
        );
        let unreadable = self.stores.job_sets.unreadable(key);
        let mut cluster =
            LiveCluster::new(self, (key, worker), pinned, job, &start.job_set, start.now);
        let flow = Flow::new(&mut cluster, &start);
        let outcome = match unreadable {
            Some(job_set) => {
                let error = unreadable_error(names::JOB_SET, key, &job_set);
                flow.refuse(error).await
            }
            None => flow.run().await,
        };
        for report in &outcome.reports {
            self.log_report(key, &start, report);
        }
        outcome
    }

    /// Whether a TrainJob follows a replacement of the plugins: this controller reconciles it, and it has neither started nor ended.
    pub(crate) fn follows(&self, key: &NamespacedName, job: &TrainJobState) -> bool {
        let is_reconciled = job.desired.managed_by_us && !job.deleting;
        let has_ended = || status::end(&job.status).is_some();
        let has_not_started = || KnownJobSet::of(self, key, &job.uid).has_not_started(&job.status);
        is_reconciled && !has_ended() && has_not_started()
    }

    /// Whether the last reconcile of a TrainJob was with the plugins that its namespace has now. A reconcile that has just begun may still change
    /// that.
    pub(crate) fn has_followed(&self, key: &NamespacedName) -> bool {
        let pinned = self.pin(&key.namespace);
        let last = self.last();
        let last = last.get(key).and_then(Option::as_ref);
        last.is_some_and(|last| last.common == pinned.generation().common)
    }

    /// Returns the TrainJob in the store. What was remembered of a TrainJob that is gone or unreadable is discarded, and what one of another manager waited for.
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

    /// Logs a report, unless it is a warning.
    fn log_report(&self, key: &NamespacedName, start: &Start, report: &Report) {
        let allowed = || self.log.allow(&key.namespace);
        match report {
            Report::Rendering(_) | Report::Error(_) | Report::Waits(_) | Report::BothMarks => {}
            Report::NotFollowed(error) => {
                if let Some(AllowedLine { left_out }) = allowed() {
                    tracing::info!(%error, left_out, "live objects are left unchanged");
                }
            }
            Report::NotAnnotated(error) => {
                let annotated = start.annotated.as_ref();
                if annotated.is_some_and(|last| last.refused) {
                    tracing::debug!(%error, "the TrainJob's annotation {} is still outdated", names::ERROR_ANNOTATION);
                } else if let Some(AllowedLine { left_out }) = allowed() {
                    tracing::warn!(%error, left_out, "the TrainJob's annotation {} is outdated", names::ERROR_ANNOTATION);
                }
            }
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

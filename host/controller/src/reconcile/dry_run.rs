//! Reading and rendering a TrainJob as a reconcile would, without writing anything: what admission checks of a TrainJob before the API server
//! stores it.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use trainyard_model::deadline::Deadline;
use trainyard_render::{Renderer, Stopped};

use super::{
    Reconciler,
    cluster::{
        Basis, KeptInterests, Memory as _, Renderings as _, Result, RuntimeSource, Runtimes as _,
        Snapshots as _, TrainJobs as _,
    },
    error::ReconcileError,
    facts::WithFacts,
    live_cluster::{LiveCluster, train_jobs::AdmittedTrainJob},
    snapshot::Snapshot,
    start::KnownJobSet,
    status,
    vouch::Trust,
};
use crate::{
    fair::Worker,
    queue::NamespacedName,
    watch::{Interests, TrainJobState},
};

/// What is checked of a TrainJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// The object alone.
    Read,
    /// Also whether it can be rendered, from its current runtime.
    RenderNew,
    /// The same for a TrainJob that exists. One that has started is not rendered: its patches are compared with the runtime in its snapshot.
    RenderExisting,
}

/// The result of a dry run.
#[derive(Debug, Default)]
pub(crate) struct DryRunResult {
    /// Warnings for the TrainJob's author.
    pub(crate) warnings: Vec<String>,
    /// Why the TrainJob would not be reconciled.
    pub(crate) error: Option<ReconcileError>,
}

impl Reconciler {
    /// Returns the replicated jobs of a TrainJob's JobSet that have active Jobs.
    pub(crate) fn active_jobs(&self, key: &NamespacedName, uid: &str) -> Vec<String> {
        let known = KnownJobSet::of(self, key, uid);
        let counts = known.ours().map(|job_set| job_set.jobs.iter());
        let active = counts.into_iter().flatten().filter(|job| job.active > 0);
        active.map(|job| job.name.clone()).collect()
    }

    /// Runs a check that calls no plugin on a thread, when it is the namespace's turn.
    pub(crate) async fn dry_read<T: Send + 'static>(
        &self,
        namespace: &Arc<str>,
        worker: &Worker,
        check: impl FnOnce(&Renderer) -> T + Send + 'static,
    ) -> Result<T> {
        let pinned = self.pin(namespace);
        let check = move |_: &Deadline| check(pinned.generation().renderer());
        let checked = self.threads.run(namespace, check);
        Ok(worker.free_while(checked).await?)
    }

    /// Reads a TrainJob, and renders it.
    pub(crate) async fn dry_run(
        &self,
        key: &NamespacedName,
        worker: &Worker,
        job: Arc<TrainJobState>,
        what: DryRun,
    ) -> DryRunResult {
        let known = KnownJobSet::of(self, key, &job.uid);
        let runs = known.ours().is_some_and(|job_set| !job_set.suspended);
        let started = runs || status::has_run(&job.status);
        let _forgotten = ForgetInterests(&self.interests, key);
        let mut run = Run {
            cluster: LiveCluster::new(
                self,
                (key, worker),
                self.pin(&key.namespace),
                job,
                &known,
                Timestamp::now(),
            ),
            warnings: Vec::new(),
        };
        let error = run.run(what, started).await.err();
        run.cluster.settle(KeptInterests::None);
        DryRunResult {
            warnings: run.warnings,
            error,
        }
    }
}

/// Forgets what a dry run was interested in, also if it is canceled.
pub(super) struct ForgetInterests<'a>(pub(super) &'a Interests, pub(super) &'a NamespacedName);

impl Drop for ForgetInterests<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

/// A dry run.
struct Run<'a> {
    cluster: LiveCluster<'a>,
    warnings: Vec<String>,
}

impl Run<'_> {
    async fn run(&mut self, what: DryRun, started: bool) -> Result<()> {
        let job = self.cluster.train_job().await?;
        let forms = job.job.conversion.warnings.iter();
        self.warnings.extend(forms.map(ToString::to_string));
        match what {
            DryRun::Read => Ok(()),
            DryRun::RenderNew => self.render_current(&job).await,
            DryRun::RenderExisting => self.render_existing(&job, started).await,
        }
    }

    /// Checks an existing TrainJob: with its snapshot if it has started, and otherwise as the next reconcile renders it.
    async fn render_existing(&mut self, job: &AdmittedTrainJob, started: bool) -> Result<()> {
        let snapshot = match self.cluster.snapshot(job).await {
            Ok(found) => found,
            // A reconcile replaces or ignores it.
            Err(error) if error.is_of_snapshot() || error.is_foreign() => None,
            Err(error) => return Err(error),
        };
        let started = started || snapshot.as_ref().is_some_and(|it| it.facts.marks.started);
        match snapshot {
            Some(WithFacts { value, .. }) if started => self.plan(job, value).await,
            None if started => Ok(()),
            Some(WithFacts { facts, value }) if facts.trust != Trust::Nothing => {
                self.render(job, RuntimeSource::Snapshot, value).await
            }
            _ => self.render_current(job).await,
        }
    }

    /// Compares the patches of a TrainJob that has started with the runtime of its snapshot. No plugin is called.
    async fn plan(&mut self, job: &AdmittedTrainJob, snapshot: Snapshot) -> Result<()> {
        let job = job.job.clone();
        let planned = self.cluster.plan(&job, &snapshot).await?;
        planned.map_err(|problems| {
            ReconcileError::render(job, snapshot.runtime, Stopped::Refused(problems))
        })
    }

    /// Renders from the current runtime. The runtime is read from the API server if it is not in the store, or if the one in the store is
    /// another one than that and the TrainJob cannot be rendered with it: the watch may be behind.
    async fn render_current(&mut self, job: &AdmittedTrainJob) -> Result<()> {
        let stored = match self.cluster.runtime(job).await {
            Ok(stored) => stored,
            Err(ReconcileError::NoRuntime { .. } | ReconcileError::Runtime { .. }) => {
                let live = self.cluster.live_runtime(job).await?;
                return self.render(job, RuntimeSource::Runtime, live).await;
            }
            Err(error) => return Err(error),
        };
        let used = stored.runtime.clone();
        let refused = match self.render(job, RuntimeSource::Runtime, stored).await {
            Err(error @ ReconcileError::Render(_)) => error,
            other => return other,
        };
        match self.cluster.live_runtime(job).await {
            Ok(live) if live.runtime != used => {
                self.render(job, RuntimeSource::Runtime, live).await
            }
            _ => Err(refused),
        }
    }

    async fn render(
        &mut self,
        job: &AdmittedTrainJob,
        source: RuntimeSource,
        snapshot: Snapshot,
    ) -> Result<()> {
        let basis = Basis {
            source,
            snapshot,
            started: false,
        };
        let rendered = self.cluster.render(job, &basis, None).await?;
        self.warnings.extend(rendered.facts.warnings);
        Ok(())
    }
}

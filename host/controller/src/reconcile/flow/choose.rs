//! The snapshot that a TrainJob is rendered from, and its marks.

use std::sync::Arc;

use super::{Flow, Rendering, Report, Reports, Result, Snapshot, because};
use crate::reconcile::{
    cluster::{Basis, Cluster, WithFacts, RenderedFacts, RuntimeSource, SnapshotFacts, MarksToSet},
    error::{ReconcileError, SnapshotError},
    object_ref::ObjectRef,
};

/// What a suspended JobSet is rendered from.
pub(super) struct Choice<C: Cluster> {
    pub(super) inputs: Chosen<C>,
    pub(super) reports: Reports,
}

/// The inputs of a suspended JobSet.
pub(super) enum Chosen<C: Cluster> {
    /// It has never run, and may change as a whole.
    New(Basis<C::Snapshot>),
    /// It may have run.
    Started(Started<C>),
}

/// The inputs of a suspended JobSet that may have run.
pub(super) enum Started<C: Cluster> {
    Basis(Basis<C::Snapshot>),
    /// It was rendered from the current runtime already.
    Rendered(Rendering<C>),
    /// It continues without a snapshot and a runtime.
    Nothing,
}

impl<C: Cluster> Flow<'_, C> {
    /// Renders a TrainJob without a JobSet, and saves its snapshot. `None` if its JobSet has run and may have ended.
    pub(super) async fn render_new(
        &mut self,
        train_job: &C::TrainJob,
    ) -> Result<Option<Rendering<C>>> {
        let has_run = self.start.job.has_run();
        if has_run {
            match self.read_snapshot(train_job).await? {
                Some(found) => return self.render_existing(train_job, found).await,
                None if self.may_have_ended(None) => return Ok(None),
                None => {}
            }
        }
        let (rendering, error) = match self.render_current(train_job, has_run).await {
            Ok(mut rendering) => match self.save(&mut rendering).await {
                Ok(()) => return Ok(Some(rendering)),
                Err(error) if error.is_conflict() => (Some(rendering), error),
                Err(error) => return Err(error),
            },
            // The snapshot was made from an earlier state of the runtime.
            Err(error) if error.is_of_input() => (None, error),
            Err(error) => return Err(error),
        };
        let found = self.read_snapshot(train_job).await?.ok_or(error)?;
        match rendering {
            Some(mut rendering) if self.is_unused(&found.facts) => {
                self.save(&mut rendering).await?;
                Ok(Some(rendering))
            }
            _ => self.render_existing(train_job, found).await,
        }
    }

    /// Whether no JobSet was created from the snapshot, for example because the API server refuses the runtime's pods. A runtime that was
    /// corrected since then is followed.
    fn is_unused(&self, snapshot: &SnapshotFacts) -> bool {
        let job = &self.start.job;
        let had_job_set = job.had_job_set() || job.has_run() || self.start.job_set.was_deleted();
        !had_job_set && !snapshot.started && !snapshot.recreate
    }

    /// Renders from the existing snapshot for a JobSet that is created or recreated, or from the current runtime if nothing vouches for the
    /// snapshot. If the last JobSet has run, the snapshot is marked first, so that a controller that restarts before the JobSet is recreated
    /// knows.
    async fn render_existing(
        &mut self,
        train_job: &C::TrainJob,
        found: Snapshot<C>,
    ) -> Result<Option<Rendering<C>>> {
        let WithFacts { facts, value } = found;
        if self.may_have_ended(Some(&facts)) {
            return Ok(None);
        }
        let recreate = self.start.job_set.was_deleted() && !facts.recreate;
        let has_run = self.start.job.has_run() || facts.started;
        if has_run && (!facts.started || recreate) {
            because("the JobSet was deleted before it ended");
            let mark = MarksToSet {
                started: true,
                recreate: recreate.then_some(true),
            };
            self.mark(mark).await?;
        }
        let mut rendering = if facts.trusted {
            let basis = Basis {
                source: RuntimeSource::Snapshot,
                snapshot: value,
                started: has_run,
            };
            self.render(train_job, &basis).await?
        } else {
            self.render_current(train_job, has_run).await?
        };
        if has_run && !rendering.facts.saved {
            return Err(SnapshotError::unproven(&self.start.job.name).into());
        }
        self.save(&mut rendering).await?;
        Ok(Some(rendering))
    }

    /// Whether the deleted JobSet has run and may have ended. It has not if it was suspended, or was seen to be deleted before its end.
    fn may_have_ended(&self, snapshot: Option<&SnapshotFacts>) -> bool {
        let job = &self.start.job;
        let has_run = job.has_run() || snapshot.is_some_and(|snapshot| snapshot.started);
        let has_not_ended = job.is_suspended()
            || self.start.job_set.was_deleted()
            || snapshot.is_some_and(|snapshot| snapshot.recreate);
        has_run && !has_not_ended
    }

    /// Chooses what a suspended JobSet is rendered from. The current runtime replaces a missing or unusable snapshot.
    ///
    /// A JobSet that has never run is not frozen, and waits for everything that its rendering needs. Any other continues even without a
    /// snapshot and a runtime; an unusable snapshot is then left unchanged, with a warning.
    pub(super) async fn choose_for_suspended(
        &mut self,
        train_job: &C::TrainJob,
        never_run: bool,
    ) -> Result<Choice<C>> {
        let error = match self.read_snapshot(train_job).await {
            Ok(Some(found)) => return self.choose_existing(found, never_run).await,
            Ok(None) if never_run => {
                let basis = self.current_runtime(train_job, false).await?;
                return Ok(Chosen::New(basis).without_reports());
            }
            Ok(None) => return self.create_missing(train_job).await,
            Err(error) => error,
        };
        let is_foreign = error.is_foreign();
        if !(error.is_of_snapshot() || is_foreign && !never_run) {
            return Err(error);
        }
        if never_run {
            self.read_marks().await?;
            if self.marks.as_ref().is_some_and(|marks| !marks.started) {
                return Ok(Choice {
                    inputs: Chosen::New(self.current_runtime(train_job, false).await?),
                    reports: vec![Report::Error(error)],
                });
            }
        }
        let mut reports = vec![Report::Error(error)];
        let inputs = match self.current_runtime(train_job, true).await {
            Ok(basis) => Started::Basis(basis),
            Err(error) if error.is_of_input() && !never_run => {
                reports.push(Report::Error(error));
                Started::Nothing
            }
            Err(error) => return Err(error),
        };
        let inputs = Chosen::Started(inputs);
        Ok(Choice { inputs, reports })
    }

    /// Chooses the existing snapshot. If only the TrainJob's status shows that its JobSet has run, the snapshot is marked, because the counts
    /// of the next JobSet replace the status.
    async fn choose_existing(&mut self, found: Snapshot<C>, never_run: bool) -> Result<Choice<C>> {
        let WithFacts { facts, value } = found;
        let has_run = self.start.job.has_run();
        if has_run {
            self.mark_started().await?;
        }
        if facts.recreate {
            because("the JobSet was recreated");
            self.mark(MarksToSet::CLEAR_RECREATE).await?;
        }
        let started = facts.was_started || has_run;
        let basis = Basis {
            source: RuntimeSource::Snapshot,
            snapshot: value,
            started,
        };
        // It is not known whether a JobSet from before plans and digests has run.
        let is_new = !started && (facts.has_plan || never_run);
        let chosen = if is_new {
            Chosen::New(basis)
        } else {
            Chosen::Started(Started::Basis(basis))
        };
        Ok(chosen.without_reports())
    }

    /// Creates the missing snapshot of a suspended JobSet that may have run, from the current runtime.
    async fn create_missing(&mut self, train_job: &C::TrainJob) -> Result<Choice<C>> {
        match self.render_current(train_job, true).await {
            Ok(mut rendering) => {
                // Only the patch that resumes the JobSet can vouch for the snapshot.
                if !self.start.job.desired.suspend {
                    self.save(&mut rendering).await?;
                }
                Ok(Chosen::Started(Started::Rendered(rendering)).without_reports())
            }
            Err(error) if error.is_of_input() => Ok(Choice {
                inputs: Chosen::Started(Started::Nothing),
                reports: vec![Report::Error(error)],
            }),
            Err(error) => Err(error),
        }
    }

    /// Reads the current runtime.
    async fn current_runtime(
        &mut self,
        train_job: &C::TrainJob,
        started: bool,
    ) -> Result<Basis<C::Snapshot>> {
        Ok(Basis {
            source: RuntimeSource::Runtime,
            snapshot: self.cluster.runtime(train_job).await?,
            started,
        })
    }

    /// Renders from the current runtime.
    async fn render_current(
        &mut self,
        train_job: &C::TrainJob,
        started: bool,
    ) -> Result<Rendering<C>> {
        let basis = self.current_runtime(train_job, started).await?;
        self.render(train_job, &basis).await
    }

    /// Renders the TrainJob.
    pub(super) async fn render(
        &mut self,
        train_job: &C::TrainJob,
        basis: &Basis<C::Snapshot>,
    ) -> Result<Rendering<C>> {
        self.cluster
            .render(train_job, basis, self.content.as_ref())
            .await
    }

    /// Reads the snapshot.
    pub(super) async fn read_snapshot(
        &mut self,
        train_job: &C::TrainJob,
    ) -> Result<Option<Snapshot<C>>> {
        let found = self.cluster.snapshot(train_job).await?;
        self.snapshot = found.as_ref().map(|found| found.facts.clone());
        self.content = found.as_ref().map(|found| found.value.clone());
        Ok(found)
    }

    /// Reads the marks of the snapshot. Returns an error about a snapshot of another owner, whose marks do not count.
    pub(super) async fn read_marks(&mut self) -> Result<Option<ReconcileError>> {
        self.marks = self.cluster.snapshot_marks().await?;
        let foreign = self.marks.as_mut().and_then(|marks| marks.foreign.take());
        if foreign.is_some() {
            self.marks = None;
        }
        Ok(foreign)
    }

    /// Saves the snapshot of the rendering, unless it is saved.
    pub(super) async fn save(&mut self, rendering: &mut Rendering<C>) -> Result<()> {
        let WithFacts { facts, value } = rendering;
        if facts.saved {
            return Ok(());
        }
        let at = self.snapshot.as_ref().map(|snapshot| &snapshot.at);
        let at = at
            .or_else(|| self.marks.as_ref().map(|marks| &marks.at))
            .cloned();
        let mut saved = match at {
            Some(at) => {
                because("the snapshot is outdated or cannot be used");
                self.cluster.replace_snapshot(value, &at).await?
            }
            None => self.cluster.create_snapshot(value).await?,
        };
        // Its other marks stay.
        saved.recreate = self.is_to_recreate();
        (self.snapshot, facts.saved) = (Some(saved), true);
        Ok(())
    }

    /// Marks the snapshot as started, also one that cannot be read.
    pub(super) async fn mark_started(&mut self) -> Result<()> {
        let is_started = match (&self.snapshot, &self.marks) {
            (Some(snapshot), _) => snapshot.started,
            (None, Some(marks)) => marks.started,
            (None, None) => return Ok(()),
        };
        if is_started {
            return Ok(());
        }
        self.mark(MarksToSet::STARTED).await
    }

    /// Sets marks of the snapshot.
    pub(super) async fn mark(&mut self, mark: MarksToSet) -> Result<()> {
        let (at, started, recreate) = match (&mut self.snapshot, &mut self.marks) {
            (Some(it), _) => (&mut it.at, &mut it.started, &mut it.recreate),
            (None, Some(it)) => (&mut it.at, &mut it.started, &mut it.recreate),
            (None, None) => return Ok(()),
        };
        *at = self.cluster.mark_snapshot(mark, at).await?;
        *started |= mark.started;
        *recreate = mark.recreate.unwrap_or(*recreate);
        Ok(())
    }

    /// Whether the snapshot is marked because its JobSet was deleted.
    pub(super) fn is_to_recreate(&self) -> bool {
        match (&self.snapshot, &self.marks) {
            (Some(snapshot), _) => snapshot.recreate,
            (None, marks) => marks.as_ref().is_some_and(|marks| marks.recreate),
        }
    }

    /// Whether the reference created the snapshot, which then has no plan and lists no objects.
    pub(super) fn is_of_reference(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|it| !it.has_plan)
    }

    /// Returns the objects that the snapshot lists.
    pub(super) fn listed(&self) -> Arc<[ObjectRef]> {
        let objects = self.snapshot.as_ref().map(|it| it.objects.clone());
        objects.unwrap_or_default()
    }

    /// Notes facts that a restarted controller could not observe: that a JobSet which will expire has run, and that a deleted JobSet was
    /// recreated.
    pub(super) async fn note_applied(&mut self, rendered: &RenderedFacts) -> Result<()> {
        // If it is deleted again, a restarted controller recreates it too.
        if self.is_to_recreate() && self.cluster.job_set_now().exists() {
            because("the JobSet was recreated");
            self.mark(MarksToSet::CLEAR_RECREATE).await?;
        }
        if rendered.expires && !self.start.job.desired.suspend && self.snapshot.is_some() {
            self.mark_started().await?;
        }
        Ok(())
    }
}

impl<C: Cluster> Chosen<C> {
    fn without_reports(self) -> Choice<C> {
        Choice {
            inputs: self,
            reports: Reports::new(),
        }
    }
}

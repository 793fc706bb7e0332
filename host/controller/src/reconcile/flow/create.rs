//! Creates the JobSet of a TrainJob that has none. If a deleted JobSet may have ended, the TrainJob ends instead, because its training
//! would run again.

use super::{Flow, Rendering, Result, Snapshot, because, write::JobSetStage};
use crate::reconcile::{
    cluster::{Apply, Basis, Cluster, MarksToSet, RuntimeSource},
    error::{ReconcileError, SnapshotError},
    facts::{Owner, SnapshotFacts, WithFacts},
    start::Start,
    vouch::Trust,
};

impl<C: Cluster> Flow<'_, C> {
    /// Creates the snapshot, the objects and the JobSet.
    pub(super) async fn create(&mut self) -> Result<()> {
        self.cluster.begin();
        let train_job = self.cluster.train_job().await?;
        if self.may_have_job_set() {
            // An outdated store would recreate the JobSet of a TrainJob that was deleted or has ended, or write over another JobSet.
            self.cluster.confirm_absence().await?;
        }
        let Some(rendering) = self.render_new(&train_job).await? else {
            return self.end_unseen().await;
        };
        let objects = self
            .write_all(&rendering.facts.objects, JobSetStage::Fresh)
            .await?;
        self.apply_new(&rendering.value).await?;
        self.note_applied(&rendering.facts).await?;
        self.remember(Some(objects));
        self.report_warnings(&rendering.facts);
        Ok(())
    }

    /// Renders a TrainJob without a JobSet, and saves its snapshot. `None` if its JobSet has run and may have ended.
    async fn render_new(&mut self, train_job: &C::TrainJob) -> Result<Option<Rendering<C>>> {
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
        // A controller that led before may have created the JobSet.
        if !self.may_have_job_set() {
            self.cluster.confirm_absence().await?;
        }
        match rendering {
            Some(mut rendering) if self.is_unused(&found.facts) => {
                self.save(&mut rendering).await?;
                Ok(Some(rendering))
            }
            _ => self.render_existing(train_job, found).await,
        }
    }

    /// Whether there may be a JobSet that the store does not show: the watch may be behind, and the answer to its creation may have been lost.
    /// If this process knows that there was one, a watch that is behind may not show yet that the TrainJob was deleted, too.
    fn may_have_job_set(&self) -> bool {
        let Start {
            job,
            job_set,
            last,
            unfinished,
            ..
        } = self.start;
        *unfinished || last.is_some() || job_set.deleted.is_some() || job.had_job_set()
    }

    /// Whether no JobSet was created from the snapshot, for example because the API server refuses the runtime's pods. A runtime that was
    /// corrected since then is followed.
    fn is_unused(&self, snapshot: &SnapshotFacts) -> bool {
        let job = &self.start.job;
        let had_job_set = job.had_job_set() || job.has_run() || self.start.job_set.was_deleted();
        !had_job_set && !snapshot.marks.started && !snapshot.marks.recreate
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
        let recreate = self.start.job_set.was_deleted() && !facts.marks.recreate;
        let has_run = self.start.job.has_run() || facts.marks.started;
        if has_run && (!facts.marks.started || recreate) {
            because("the JobSet was deleted before it ended");
            let mark = MarksToSet {
                started: true,
                recreate: recreate.then_some(true),
            };
            self.mark(mark).await?;
        }
        let mut rendering = if facts.trust != Trust::Nothing {
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
        let has_run = job.has_run() || snapshot.is_some_and(|snapshot| snapshot.marks.started);
        // A reconcile that failed may have shown that it is suspended, if no counts show that it had a JobSet.
        let was_suspended = job.is_suspended() && job.had_job_set();
        let has_not_ended = was_suspended
            || self.start.job_set.was_deleted()
            || snapshot.is_some_and(|snapshot| snapshot.marks.recreate);
        has_run && !has_not_ended
    }

    /// Applies the JobSet without force. Server-side apply has no precondition that there is none; if there may be one, its absence was confirmed.
    /// A JobSet that is created by a POST would keep all fields that a later apply leaves out.
    async fn apply_new(&mut self, rendering: &C::Rendering) -> Result<()> {
        let how = Apply {
            over: None,
            held: None,
            recreated: self.snapshot.is_to_recreate(),
        };
        let Err(error) = self.cluster.apply_job_set(rendering, how).await else {
            return Ok(());
        };
        // Fields of another manager, or another controller's owner reference: another client created a JobSet of this name.
        if error.is_contested()
            && let Ok(Owner::Foreign(foreign)) = self.cluster.job_set_owner().await
        {
            return Err(foreign);
        }
        Err(error)
    }

    /// Ends a TrainJob whose JobSet ran and was deleted, without its end being observed.
    async fn end_unseen(&mut self) -> Result<()> {
        because("the JobSet was deleted and it is not known how it ended");
        self.cluster.note_unseen_end();
        let name = self.start.job.name.to_string();
        self.report(ReconcileError::EndIsUnknown { name });
        Ok(())
    }
}

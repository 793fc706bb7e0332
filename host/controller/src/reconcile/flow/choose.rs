//! What a suspended JobSet is rendered from.

use super::{Flow, Rendering, Result, Snapshot, because};
use crate::reconcile::{
    cluster::{Basis, Cluster, MarksToSet, RuntimeSource},
    facts::WithFacts,
};

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
    /// Chooses what a suspended JobSet is rendered from. The current runtime replaces a missing or unusable snapshot.
    ///
    /// A JobSet that has never run is not frozen, and waits for everything that its rendering needs. Any other continues even without a
    /// snapshot and a runtime; an unusable snapshot is then left unchanged, with a warning.
    pub(super) async fn choose_for_suspended(
        &mut self,
        train_job: &C::TrainJob,
        never_run: bool,
    ) -> Result<Chosen<C>> {
        let error = match self.read_snapshot(train_job).await {
            Ok(Some(found)) => return self.choose_existing(found, never_run).await,
            Ok(None) if never_run => {
                let basis = self.current_runtime(train_job, false).await?;
                return Ok(Chosen::New(basis));
            }
            Ok(None) => return self.create_missing(train_job).await,
            Err(error) => error,
        };
        let is_foreign = error.is_foreign();
        if !(error.is_of_snapshot() || is_foreign && !never_run) {
            return Err(error);
        }
        self.report(error);
        if never_run {
            self.read_marks().await?;
            if self.snapshot.marks().is_some_and(|marks| !marks.started) {
                let basis = self.current_runtime(train_job, false).await?;
                return Ok(Chosen::New(basis));
            }
        }
        let inputs = match self.current_runtime(train_job, true).await {
            Ok(basis) => Started::Basis(basis),
            Err(error) if error.is_of_input() && !never_run => {
                self.report(error);
                Started::Nothing
            }
            Err(error) => return Err(error),
        };
        Ok(Chosen::Started(inputs))
    }

    /// Chooses the existing snapshot. If only the TrainJob's status shows that its JobSet has run, the snapshot is marked, because the counts
    /// of the next JobSet replace the status.
    async fn choose_existing(&mut self, found: Snapshot<C>, never_run: bool) -> Result<Chosen<C>> {
        let WithFacts { facts, value } = found;
        let has_run = self.start.job.has_run();
        if has_run {
            self.mark_started().await?;
        }
        if facts.marks.recreate {
            because("the JobSet was recreated");
            self.mark(MarksToSet::CLEAR_RECREATE).await?;
        }
        let started = facts.marks.started || has_run;
        let basis = Basis {
            source: RuntimeSource::Snapshot,
            snapshot: value,
            started,
        };
        // It is not known whether a JobSet from before plans and digests has run.
        let is_new = !started && (facts.has_plan || never_run);
        Ok(if is_new {
            Chosen::New(basis)
        } else {
            Chosen::Started(Started::Basis(basis))
        })
    }

    /// Creates the missing snapshot of a suspended JobSet that may have run, from the current runtime.
    async fn create_missing(&mut self, train_job: &C::TrainJob) -> Result<Chosen<C>> {
        match self.render_current(train_job, true).await {
            Ok(mut rendering) => {
                // Only the patch that resumes the JobSet can vouch for the snapshot.
                if !self.start.job.desired.suspend {
                    self.save(&mut rendering).await?;
                }
                Ok(Chosen::Started(Started::Rendered(rendering)))
            }
            Err(error) if error.is_of_input() => {
                self.report(error);
                Ok(Chosen::Started(Started::Nothing))
            }
            Err(error) => Err(error),
        }
    }
}

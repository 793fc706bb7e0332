//! Creates the JobSet of a TrainJob that has none. If a deleted JobSet may have ended, the TrainJob ends instead, because its training
//! would run again.

use super::{Flow, Report, Reports, Result, because, take_warnings, write::JobSetStage};
use crate::reconcile::{
    cluster::{Apply, Cluster, Owner},
    error::ReconcileError,
};

impl<C: Cluster> Flow<'_, C> {
    /// Creates the snapshot, the objects and the JobSet.
    pub(super) async fn create(&mut self) -> Result<Reports> {
        self.cluster.begin();
        let train_job = self.cluster.train_job().await?;
        if self.start.job.had_job_set() {
            // An outdated store would recreate the JobSet of a TrainJob that was deleted or has ended.
            self.cluster.confirm_train_job().await?;
        }
        let Some(mut rendering) = self.render_new(&train_job).await? else {
            return self.end_unseen().await;
        };
        let objects = self
            .write_all(&rendering.facts.objects, JobSetStage::Fresh)
            .await?;
        self.apply_new(&rendering.value).await?;
        self.note_applied(&rendering.facts).await?;
        self.remember(Some(objects));
        Ok(take_warnings(&mut rendering.facts))
    }

    /// Applies the JobSet without force.
    async fn apply_new(&mut self, rendering: &C::Rendering) -> Result<()> {
        let how = Apply {
            over: None,
            held: None,
            recreated: self.is_to_recreate(),
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
    async fn end_unseen(&mut self) -> Result<Reports> {
        because("the JobSet was deleted and it is not known how it ended");
        self.cluster.confirm_absence().await?;
        self.cluster.note_unseen_end();
        let name = self.start.job.name.to_string();
        Ok(vec![Report::Error(ReconcileError::EndIsUnknown { name })])
    }
}

//! The placement of the pods of a suspended JobSet. When JobSet unsuspends Jobs, it adds the placement of the replicated job and removes
//! nothing. Jobs with entries that are not wanted are therefore deleted first, and JobSet recreates them.

use super::{Flow, Rendering, Result, SuspendedJobSet, because};
use crate::reconcile::{
    cluster::{Cluster, WantedPlacement},
    error::ReconcileError,
};

impl<C: Cluster> Flow<'_, C> {
    /// Unsuspends a JobSet that has run, with the wanted placement.
    pub(super) async fn unsuspend(
        &mut self,
        train_job: &C::TrainJob,
        mut found: SuspendedJobSet<C>,
        rendering: Option<&Rendering<C>>,
    ) -> Result<()> {
        // Without a rendering, only the snapshot distinguishes the placement by plugins from that of an earlier admission.
        let wanted = match (rendering, self.snapshot.content()) {
            (Some(rendering), _) => WantedPlacement::Rendered(&rendering.value),
            (None, Some(content)) => WantedPlacement::Noted(content),
            (None, None) => WantedPlacement::Live,
        };
        let compared = self.cluster.placement(train_job, &found.value, wanted);
        let mut placement = compared.await?;
        if placement.facts.loses {
            if placement.facts.moves || !placement.facts.noted {
                because("Jobs still have the placement of an earlier admission");
                let (at, changes) = (&found.facts.at, &placement.value);
                self.cluster.relocate(at, changes).await?;
                found = self.read_suspended(&found).await?;
                // An admission may have added entries to the JobSet, which are not part of what is wanted.
                let wanted = WantedPlacement::AsBefore(changes);
                let compared = self.cluster.placement(train_job, &found.value, wanted);
                placement = compared.await?;
            }
            self.delete_old_jobs(&found).await?;
        }
        let rendering = rendering.map(|rendering| &rendering.value);
        let (at, changes) = (&found.facts.at, &placement.value);
        self.cluster.resume(at, changes, rendering).await
    }

    /// Reads a suspended JobSet again after it was changed.
    pub(super) async fn read_suspended(
        &mut self,
        found: &SuspendedJobSet<C>,
    ) -> Result<SuspendedJobSet<C>> {
        let uid = found.facts.at.uid.as_deref().unwrap_or_default();
        self.cluster.suspended_job_set(uid).await
    }

    /// Deletes the Jobs of a suspended JobSet that still have removed entries.
    pub(super) async fn delete_old_jobs(&mut self, found: &SuspendedJobSet<C>) -> Result<()> {
        // They were noted. A controller that does not lead any more has written since.
        if !found.facts.removed {
            return Err(ReconcileError::changed_job_set(&self.start.job.name));
        }
        let jobs = match self.cluster.old_jobs(&found.value).await {
            Ok(jobs) => jobs,
            // Without permission to list Jobs, the JobSet is unsuspended as JobSet allows.
            Err(error) if error.is_rejection() => {
                self.report(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if jobs.is_empty() {
            return Ok(());
        }
        // Terminating pods have to be gone first, because their successors have the same names.
        for job in jobs
            .iter()
            .filter(|job| !found.facts.active && !job.deleting)
        {
            self.cluster.delete_job(job).await?;
        }
        let name = self.start.job.name.to_string();
        Err(ReconcileError::JobsHaveOldPlacement { name })
    }
}

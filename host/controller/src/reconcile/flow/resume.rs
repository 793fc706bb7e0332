//! Unsuspends a JobSet that has run, with the current placement of its pods. While it stays suspended, it does not change. The objects
//! beside it are updated as their modes allow.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{Flow, Rendering, Result, SuspendedJobSet, choose::Started, write::JobSetStage};
use crate::reconcile::{cluster::Cluster, facts::ObjectToWrite, last_reconcile::AppliedObject};

impl<C: Cluster> Flow<'_, C> {
    /// Resumes the JobSet, if the TrainJob is not to be suspended.
    pub(super) async fn resume(
        &mut self,
        train_job: &C::TrainJob,
        found: SuspendedJobSet<C>,
        inputs: Started<C>,
    ) -> Result<()> {
        let rendered = match inputs {
            Started::Rendered(rendering) => Ok(rendering),
            Started::Basis(basis) => self.render(train_job, &basis).await,
            Started::Nothing => {
                // It is not known which entries of the placement are from an earlier admission.
                if !self.start.job.desired.suspend {
                    self.unsuspend(train_job, found, None).await?;
                }
                self.remember(Some(AppliedObject::unknown(&[])));
                return Ok(());
            }
        };
        let rendering = match rendered {
            Ok(rendering) => {
                // While it stays suspended, it may be rendered again and again.
                if !self.start.job.desired.suspend {
                    self.report_warnings(&rendering.facts);
                }
                Some(rendering)
            }
            // Its plugins are missing or have changed; the snapshot notes their placement.
            Err(error) if error.is_of_rendering() => {
                self.report(error);
                None
            }
            Err(error) => return Err(error),
        };
        let objects = self.write_pinned(rendering.as_ref()).await?;
        if !self.start.job.desired.suspend {
            self.unsuspend(train_job, found, rendering.as_ref()).await?;
        }
        self.remember(Some(objects));
        Ok(())
    }

    /// Writes the objects that the snapshot lists.
    async fn write_pinned(
        &mut self,
        rendering: Option<&Rendering<C>>,
    ) -> Result<Arc<[AppliedObject]>> {
        let listed = self.snapshot.listed();
        let Some(rendering) = rendering else {
            return Ok(AppliedObject::unknown(&listed));
        };
        // The placement puts pods into a gang or takes them out of it, also in a JobSet of the reference, so its counts must follow.
        let is_of_reference = self.snapshot.is_of_reference();
        let is_pinned = |it: &&ObjectToWrite| {
            let is_gang = it.object.apply == ApplyMode::WhileSuspended && is_of_reference;
            is_gang || listed.contains(&it.object)
        };
        let objects: Vec<_> = rendering.facts.objects.iter().filter(is_pinned).collect();
        self.write_all(objects, JobSetStage::Suspended).await
    }
}

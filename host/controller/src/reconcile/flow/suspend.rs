//! Suspends a running JobSet. Nothing else of it changes.

use super::{Flow, Result};
use crate::{reconcile::cluster::Cluster, watch::JobSetState};

impl<C: Cluster> Flow<'_, C> {
    /// Suspends the JobSet after its snapshot is marked as started.
    pub(super) async fn suspend(&mut self, found: &JobSetState) -> Result<()> {
        self.mark_before_suspension().await?;
        self.cluster.suspend(&found.uid).await
    }

    /// Marks the snapshot as started. If that is not possible, the JobSet is suspended nevertheless: it is marked itself.
    async fn mark_before_suspension(&mut self) -> Result<()> {
        // There is no snapshot if the JobSet is older than snapshots, or the snapshot was deleted.
        let marked = match self.read_marks().await {
            Ok(None) => self.mark_started().await,
            Ok(Some(foreign)) => {
                self.report(foreign);
                Ok(())
            }
            Err(error) => Err(error),
        };
        match marked {
            Err(error) if error.is_rejection() => {
                self.report(error);
                Ok(())
            }
            marked => marked,
        }
    }
}

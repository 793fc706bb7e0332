//! Suspends a running JobSet. Nothing else of it changes.

use super::{Flow, Report, Reports, Result};
use crate::{reconcile::cluster::Cluster, watch::JobSetState};

impl<C: Cluster> Flow<'_, C> {
    /// Suspends the JobSet after its snapshot is marked as started.
    pub(super) async fn suspend(&mut self, found: &JobSetState) -> Result<Reports> {
        let reports = self.mark_before_suspension().await?;
        self.cluster.suspend(&found.uid).await?;
        Ok(reports)
    }

    /// Marks the snapshot as started. If that is not possible, the JobSet is suspended nevertheless: it is marked itself.
    async fn mark_before_suspension(&mut self) -> Result<Reports> {
        // There is no snapshot if the JobSet is older than snapshots, or the snapshot was deleted.
        let marked = match self.read_marks().await {
            Ok(Some(foreign)) => return Ok(vec![Report::Error(foreign)]),
            Ok(None) => self.mark_started().await,
            Err(error) => Err(error),
        };
        match marked {
            Ok(()) => Ok(Reports::new()),
            Err(error) if error.is_rejection() => Ok(vec![Report::Error(error)]),
            Err(error) => Err(error),
        }
    }
}

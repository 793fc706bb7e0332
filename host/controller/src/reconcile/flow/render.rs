//! Rendering the TrainJob, from the current runtime or from the one in its snapshot.

use super::{Flow, Rendering, Result};
use crate::reconcile::{
    cluster::{Basis, Cluster, RuntimeSource},
    facts::RenderedFacts,
    outcome::Report,
};

impl<C: Cluster> Flow<'_, C> {
    /// Reads the current runtime.
    pub(super) async fn current_runtime(
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
    pub(super) async fn render_current(
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
            .render(train_job, basis, self.snapshot.content())
            .await
    }

    /// Reports the warnings of a rendering.
    pub(super) fn report_warnings(&mut self, rendered: &RenderedFacts) {
        let warnings = rendered.warnings.iter().cloned();
        self.reports.extend(warnings.map(Report::Rendering));
    }
}

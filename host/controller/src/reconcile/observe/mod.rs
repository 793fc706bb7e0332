//! Observations: each reads something that a decision needs. They never write to the cluster.

mod creation;
mod job_set;
mod jobs;
mod live_train_job;
mod lookups;
mod objects;
mod placement;
mod rendering;
mod runtime;
mod snapshot;
pub(super) mod train_job;

use super::{
    artifacts::Artifacts, context::Context, error::ReconcileError, inputs::Inputs, observed::Fact,
    step::Observe,
};

/// Makes an observation.
pub(super) async fn observe(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    what: &Observe,
) -> Result<Fact, ReconcileError> {
    match what {
        Observe::Inputs => {
            let inputs = Inputs::of(&cx.reconciler.common, cx.job()?);
            Ok(Fact::Inputs(inputs))
        }
        Observe::TrainJob => train_job::get(cx, artifacts).await,
        Observe::LiveTrainJob => live_train_job::get(cx).await,
        Observe::Absence => live_train_job::without_job_set(cx).await,
        Observe::Snapshot => snapshot::get(cx, artifacts).await,
        Observe::SnapshotMarks => snapshot::marks(cx, artifacts).await,
        Observe::Runtime => runtime::get(cx, artifacts).await,
        Observe::Rendering(basis) => rendering::get(cx, artifacts, *basis).await,
        Observe::Lookups(basis) => lookups::get(cx, artifacts, *basis).await,
        Observe::ListedObjects => snapshot::listed(cx).await,
        Observe::ListedObject(object) => objects::listed(cx, artifacts, object).await,
        Observe::Object(object) => objects::get(cx, artifacts, object).await,
        Observe::JobSetOwner => job_set::owner(cx, artifacts).await,
        Observe::LiveJobSet { uid } => job_set::live(cx, artifacts, uid).await,
        Observe::Placement(wanted) => placement::get(cx, artifacts, *wanted).await,
        Observe::Jobs => jobs::get(cx, artifacts).await,
        Observe::Creation => creation::get(cx, artifacts).await,
        Observe::Creatable { held } => job_set::creatable(cx, artifacts, *held).await,
    }
}

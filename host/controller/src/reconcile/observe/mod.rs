//! Observations: each reads something that a decision needs. They never write to the cluster.

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
    bodies::Bodies, context::Context, error::ReconcileError, inputs::Inputs, observed::Fact,
    step::Observe,
};

/// Makes an observation.
pub(super) async fn observe(
    cx: &Context<'_>,
    bodies: &mut Bodies,
    what: &Observe,
) -> Result<Fact, ReconcileError> {
    match what {
        Observe::Inputs => {
            let inputs = Inputs::of(&cx.reconciler.common, cx.job()?);
            Ok(Fact::Inputs(inputs))
        }
        Observe::TrainJob => train_job::get(cx, bodies).await,
        Observe::LiveTrainJob => live_train_job::get(cx).await,
        Observe::Absence => live_train_job::without_job_set(cx).await,
        Observe::Snapshot => snapshot::get(cx, bodies).await,
        Observe::SnapshotMarks => snapshot::marks(cx, bodies).await,
        Observe::Runtime => runtime::get(cx, bodies).await,
        Observe::Rendering(basis) => rendering::get(cx, bodies, *basis).await,
        Observe::Lookups(basis) => lookups::get(cx, bodies, *basis).await,
        Observe::ListedObjects => snapshot::listed(cx).await,
        Observe::ListedObject(object) => objects::listed(cx, bodies, object).await,
        Observe::Object(object) => objects::get(cx, bodies, object).await,
        Observe::JobSetOwner => job_set::owner(cx, bodies).await,
        Observe::LiveJobSet { uid } => job_set::live(cx, bodies, uid).await,
        Observe::Placement(wanted) => placement::get(cx, bodies, *wanted).await,
        Observe::Jobs => jobs::get(cx, bodies).await,
        Observe::Creatable { held } => job_set::creatable(cx, bodies, *held).await,
    }
}

//! The changes that a suspended JobSet needs for the wanted placement of its pods.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::deadline::{Deadline, Overdue};

use super::{LiveCluster, train_jobs::AdmittedTrainJob};
use crate::reconcile::{
    cluster::{Placements, Result, WantedPlacement},
    error::ReconcileError,
    facts::{PlacementFacts, WithFacts},
    job_set::SuspendedJobSet,
    placement::{self, Entries},
};

/// The changes that a JobSet needs for the wanted placement.
pub(in crate::reconcile) struct PlacementChanges {
    /// The JobSet with the wanted placement.
    wanted: Arc<Value>,
    /// Its replicated jobs, if their placement changes.
    pub(super) jobs: Option<Value>,
    /// The entries that its Jobs have to lose.
    pub(super) removed: Entries,
}

impl Placements for LiveCluster<'_> {
    async fn placement(
        &mut self,
        job: &AdmittedTrainJob,
        live: &Arc<SuspendedJobSet>,
        wanted: WantedPlacement<'_, Self>,
    ) -> Result<WithFacts<PlacementFacts, PlacementChanges>> {
        let is_whole = matches!(wanted, WantedPlacement::Applied(_));
        let job_set = match wanted {
            WantedPlacement::Applied(rendering) | WantedPlacement::Rendered(rendering) => {
                rendering.job_set.clone()
            }
            WantedPlacement::Noted(snapshot) => {
                let (of, snapshot) = (job.job.clone(), snapshot.clone());
                let noted =
                    move |_: &_, deadline: &Deadline| snapshot.noted_placement(&of, deadline);
                let noted = self.on_thread(noted).await?;
                match noted.map_err(ReconcileError::placing)? {
                    Some(spec) => Arc::new(json!({"spec": spec})),
                    None => self.patched(job, live).await?,
                }
            }
            WantedPlacement::Live => self.patched(job, live).await?,
            WantedPlacement::AsBefore(changes) => changes.wanted.clone(),
        };
        let live = live.clone();
        let compared =
            move |_: &_, deadline: &Deadline| compare(&live, job_set, is_whole, deadline);
        let compared = self.on_thread(compared).await?;
        compared.map_err(ReconcileError::placing)
    }
}

impl LiveCluster<'_> {
    /// Returns the live placement with the TrainJob's own patches.
    async fn patched(
        &self,
        job: &AdmittedTrainJob,
        live: &Arc<SuspendedJobSet>,
    ) -> Result<Arc<Value>> {
        let (job, live) = (job.job.clone(), live.clone());
        let patched =
            move |_: &_, deadline: &Deadline| placement::patched(&job, &live.spec, deadline);
        let spec = self.on_thread(patched).await?;
        Ok(Arc::new(
            json!({"spec": spec.map_err(ReconcileError::placing)?}),
        ))
    }
}

/// Compares a JobSet with the wanted one, which replaces it as a whole or only its placement.
fn compare(
    live: &SuspendedJobSet,
    wanted: Arc<Value>,
    is_whole: bool,
    deadline: &Deadline,
) -> Result<WithFacts<PlacementFacts, PlacementChanges>, Overdue> {
    let spec = wanted.get("spec").unwrap_or(&Value::Null);
    let removed = live.removed_by(spec);
    let jobs = if is_whole {
        None
    } else {
        deadline.check()?;
        placement::placed(&live.spec, spec)
    };
    let facts = PlacementFacts {
        loses: !removed.is_empty(),
        moves: jobs.is_some(),
        noted: removed == live.removed,
    };
    let value = PlacementChanges {
        wanted,
        jobs,
        removed,
    };
    Ok(WithFacts { facts, value })
}

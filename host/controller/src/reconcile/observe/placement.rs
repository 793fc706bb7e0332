//! The changes that a suspended JobSet needs for the wanted placement of its pods.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::deadline::{Deadline, Overdue};

use crate::reconcile::{
    artifacts::{Artifacts, PlacementChanges},
    context::Context,
    error::ReconcileError,
    job_set::SuspendedJobSet,
    observed::{Fact, Placement},
    placement,
    step::PlacementSource,
};

/// Compares the JobSet with the wanted placement.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    wanted: PlacementSource,
) -> Result<Fact, ReconcileError> {
    let live = artifacts.live()?.clone();
    let job_set = job_set(cx, artifacts, wanted).await?;
    artifacts.large().wanted = Some((wanted, job_set.clone()));
    let compared = cx.on_thread(move |_, deadline| compare(&live, &job_set, wanted, deadline));
    let (facts, changes) = compared.await?.map_err(ReconcileError::placing)?;
    artifacts.large().changes = Some(changes);
    Ok(Fact::Placement(facts))
}

/// Returns a JobSet with the wanted placement. It is computed once per reconcile.
async fn job_set(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    wanted: PlacementSource,
) -> Result<Arc<Value>, ReconcileError> {
    if let Some((of, known)) = &artifacts.large().wanted
        && *of == wanted
    {
        return Ok(known.clone());
    }
    if matches!(wanted, PlacementSource::Applied | PlacementSource::Rendered) {
        return Ok(artifacts.rendered()?.job_set.clone());
    }
    // From the noted placement or the current one, with the TrainJob's own patches.
    let (job, live) = (artifacts.job()?.clone(), artifacts.live()?.clone());
    let snapshot = artifacts.large().snapshot.clone();
    let snapshot = snapshot.filter(|_| wanted == PlacementSource::Noted);
    let placed = cx.on_thread(move |_, deadline| {
        let noted = snapshot.map(|snapshot| snapshot.placed(&job, deadline));
        match noted.transpose()?.flatten() {
            Some(noted) => Ok(noted),
            None => placement::patched(&job, &live.spec, deadline),
        }
    });
    let spec = placed.await?.map_err(ReconcileError::placing)?;
    Ok(Arc::new(json!({"spec": spec})))
}

fn compare(
    live: &SuspendedJobSet,
    job_set: &Value,
    wanted: PlacementSource,
    deadline: &Deadline,
) -> Result<(Placement, PlacementChanges), Overdue> {
    let spec = job_set.get("spec").unwrap_or(&Value::Null);
    let removed = live.removed_by(spec);
    let jobs = if wanted == PlacementSource::Applied {
        None
    } else {
        deadline.check()?;
        placement::placed(&live.spec, spec)
    };
    let facts = Placement {
        loses: !removed.is_empty(),
        moves: jobs.is_some(),
        noted: removed == live.removed,
    };
    Ok((facts, PlacementChanges { jobs, removed }))
}

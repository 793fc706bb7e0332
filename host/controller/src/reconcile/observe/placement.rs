//! The changes that a suspended JobSet needs for the wanted placement of its pods.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::deadline::{Deadline, Overdue};

use crate::reconcile::{
    bodies::{Bodies, PlacementChanges},
    context::Context,
    error::ReconcileError,
    job_set::Suspended,
    observed::{Fact, Placement},
    placement,
    step::Wanted,
};

/// Compares the JobSet with the wanted placement.
pub(super) async fn get(
    cx: &Context<'_>,
    bodies: &mut Bodies,
    wanted: Wanted,
) -> Result<Fact, ReconcileError> {
    let live = bodies.live()?.clone();
    let job_set = job_set(cx, bodies, wanted).await?;
    bodies.large().wanted = Some((wanted, job_set.clone()));
    let compared = cx.on_thread(move |_, deadline| compare(&live, &job_set, wanted, deadline));
    let (facts, changes) = compared.await?.map_err(ReconcileError::placing)?;
    bodies.large().changes = Some(changes);
    Ok(Fact::Placement(facts))
}

/// Returns a JobSet with the wanted placement. It is computed once per reconcile.
async fn job_set(
    cx: &Context<'_>,
    bodies: &mut Bodies,
    wanted: Wanted,
) -> Result<Arc<Value>, ReconcileError> {
    if let Some((of, known)) = &bodies.large().wanted
        && *of == wanted
    {
        return Ok(known.clone());
    }
    if matches!(wanted, Wanted::Applied | Wanted::Rendered) {
        return Ok(bodies.rendered()?.job_set.clone());
    }
    // From the noted placement or the current one, with the TrainJob's own patches.
    let (job, live) = (bodies.job()?.clone(), bodies.live()?.clone());
    let snapshot = bodies.large().snapshot.clone();
    let snapshot = snapshot.filter(|_| wanted == Wanted::Noted);
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
    live: &Suspended,
    job_set: &Value,
    wanted: Wanted,
    deadline: &Deadline,
) -> Result<(Placement, PlacementChanges), Overdue> {
    let spec = job_set.get("spec").unwrap_or(&Value::Null);
    let removed = live.removed_by(spec);
    let jobs = if wanted == Wanted::Applied {
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

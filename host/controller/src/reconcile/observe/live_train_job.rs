//! Checks that the store has the current TrainJob. If its watch were behind, the JobSet of a TrainJob that was deleted or has ended would
//! be recreated.

use kube::api::GetParams;

use crate::{
    kubernetes::unless_gone,
    reconcile::{context::Context, error::ReconcileError, observed::Fact},
    watch::{JobSetObject, State as _, TrainJobObject, answer, objects},
};

/// Reads the TrainJob, and updates the store if it is outdated.
pub(super) async fn get(cx: &Context<'_>) -> Result<Fact, ReconcileError> {
    let (key, known) = (cx.key, cx.job()?);
    let what = format!("TrainJob `{}`", key.name);
    let request = objects::<TrainJobObject>(&key.namespace).get(&key.name, &GetParams::default());
    let found = unless_gone(answer::<TrainJobObject>(&cx.reconciler.client, request).await);
    let found = found.map_err(|error| ReconcileError::api(format!("reading {what}"), error))?;
    let jobs = &cx.reconciler.stores.jobs;
    match found.flatten() {
        Some((_, Ok(now)))
            if now.uid == known.uid && now.resource_version() == known.resource_version() =>
        {
            Ok(Fact::Holds)
        }
        Some((key, now)) => {
            jobs.put_read(key, now);
            Err(ReconcileError::Conflict { what })
        }
        None => {
            jobs.remove(key, known.version());
            Err(ReconcileError::Conflict { what })
        }
    }
}

/// Also checks that there is no JobSet.
pub(super) async fn without_job_set(cx: &Context<'_>) -> Result<Fact, ReconcileError> {
    let holds = get(cx).await?;
    match cx.read::<JobSetObject>(&cx.key.name).await? {
        None => Ok(holds),
        Some(_) => Err(ReconcileError::Conflict {
            what: format!("JobSet `{}`", cx.key.name),
        }),
    }
}

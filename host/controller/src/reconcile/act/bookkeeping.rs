//! What the controller keeps in memory of a TrainJob.

use std::sync::Arc;

use crate::{
    reconcile::{
        context::Context,
        error::ReconcileError,
        last_reconcile::LastReconcile,
        observed::Effect,
        status,
        step::{InterestChange, MemoryUpdate},
    },
    watch::JobSetState,
};

/// Forgets what the last reconcile left: should this one fail, the next one has to do all of it. What changes is noted from now on.
pub(super) fn begin(cx: &Context<'_>) -> Effect {
    cx.reconciler.interests.begin(cx.key);
    cx.reconciler.last().remove(cx.key);
    Effect::Done
}

/// Keeps what this reconcile left.
pub(super) fn remember(cx: &Context<'_>, last: &LastReconcile) -> Effect {
    if let Some(deleted_job_set) = &cx.deleted_job_set {
        cx.reconciler
            .deleted_job_sets
            .replaced(cx.key, deleted_job_set);
    }
    cx.reconciler.last().insert(cx.key.clone(), last.clone());
    Effect::Done
}

/// Updates what else is kept.
pub(super) fn update_memory(cx: &Context<'_>, update: MemoryUpdate) -> Effect {
    let reconciler = cx.reconciler;
    match update.interests {
        InterestChange::Keep => {}
        InterestChange::Settle => reconciler.interests.settle(cx.key),
        InterestChange::Forget => reconciler.interests.forget(cx.key),
    }
    if update.forget_last {
        reconciler.last().remove(cx.key);
    }
    if update.forget_deleted_job_set {
        reconciler.deleted_job_sets.forget(cx.key);
    }
    Effect::Done
}

/// Notes how the JobSet ended that has run and is gone, as far as its last counts say it.
pub(super) fn note_unseen_end(cx: &Context<'_>) -> Result<Effect, ReconcileError> {
    let job = cx.job()?;
    let end = status::unseen_end(&job.status, cx.now);
    let deleted_job_set = JobSetState::of_deleted(job.uid.clone(), end, &job.status.jobs_status);
    let deleted_job_set = Arc::new(deleted_job_set);
    cx.reconciler
        .deleted_job_sets
        .note(cx.key, deleted_job_set, true);
    Ok(Effect::Done)
}

/// Forgets how the last JobSet went.
pub(super) fn forget_deleted_job_set(cx: &Context<'_>) -> Effect {
    cx.reconciler.deleted_job_sets.forget(cx.key);
    Effect::Done
}

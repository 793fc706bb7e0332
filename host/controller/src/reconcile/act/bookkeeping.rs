//! Updates of the state that the controller keeps in memory.

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

/// Forgets the result of the last reconcile, so that a failure is followed by a full reconcile, and starts to register interests.
pub(super) fn begin(cx: &Context<'_>) -> Effect {
    cx.reconciler.interests.begin(cx.key);
    cx.reconciler.last().remove(cx.key);
    Effect::Done
}

/// Remembers the result of this reconcile, and forgets the deleted JobSet that it has recreated.
pub(super) fn remember(cx: &Context<'_>, last: &LastReconcile) -> Effect {
    if let Some(deleted_job_set) = &cx.deleted_job_set {
        cx.reconciler
            .deleted_job_sets
            .forget_recreated(cx.key, deleted_job_set);
    }
    cx.reconciler.last().insert(cx.key.clone(), last.clone());
    Effect::Done
}

/// Updates the other state.
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

/// Notes the end of a deleted JobSet, as assumed from its last counts.
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

/// Forgets the last state of the deleted JobSet.
pub(super) fn forget_deleted_job_set(cx: &Context<'_>) -> Effect {
    cx.reconciler.deleted_job_sets.forget(cx.key);
    Effect::Done
}

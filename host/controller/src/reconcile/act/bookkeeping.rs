//! What the controller keeps in memory of a TrainJob.

use std::sync::Arc;

use crate::{
    reconcile::{
        context::Context,
        error::ReconcileError,
        last_reconcile::LastReconcile,
        observed::Effect,
        status,
        step::{Interests, Settle},
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
    if let Some(departed) = &cx.departed {
        cx.reconciler.departed.replaced(cx.key, departed);
    }
    cx.reconciler.last().insert(cx.key.clone(), last.clone());
    Effect::Done
}

/// Updates what else is kept.
pub(super) fn settle(cx: &Context<'_>, settle: Settle) -> Effect {
    let reconciler = cx.reconciler;
    match settle.interests {
        Interests::Stay => {}
        Interests::Settle => reconciler.interests.settle(cx.key),
        Interests::Forget => reconciler.interests.forget(cx.key),
    }
    if settle.forget_last {
        reconciler.last().remove(cx.key);
    }
    if settle.forget_departed {
        reconciler.departed.forget(cx.key);
    }
    Effect::Done
}

/// Notes how the JobSet ended that has run and is gone, as far as its last counts say it.
pub(super) fn note_unseen_end(cx: &Context<'_>) -> Result<Effect, ReconcileError> {
    let job = cx.job()?;
    let end = status::unseen_end(&job.status, cx.now);
    let departed = JobSetState::departed(job.uid.clone(), end, &job.status.jobs_status);
    let departed = Arc::new(departed);
    cx.reconciler.departed.note(cx.key, departed, true);
    Ok(Effect::Done)
}

/// Forgets how the last JobSet went.
pub(super) fn forget_departed(cx: &Context<'_>) -> Effect {
    cx.reconciler.departed.forget(cx.key);
    Effect::Done
}

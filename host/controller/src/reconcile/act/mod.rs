//! Actions: each changes one thing that was decided.

mod bookkeeping;
mod job_set;
mod jobs;
mod objects;
mod snapshot;
mod train_job;

use super::{
    artifacts::Artifacts, context::Context, error::ReconcileError, observed::Effect, step::Action,
};

/// Carries out an action.
pub(super) async fn act(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    action: &Action,
) -> Result<Effect, ReconcileError> {
    match action {
        Action::Begin => Ok(bookkeeping::begin(cx)),
        Action::CreateSnapshot(_) => snapshot::create(cx, artifacts).await,
        Action::ReplaceSnapshot { at, .. } => snapshot::replace(cx, artifacts, at).await,
        Action::MarkSnapshot { mark, at } => snapshot::mark(cx, *mark, at).await,
        Action::ApplyObject { object, force } => {
            objects::apply(cx, artifacts, object, *force).await
        }
        Action::CreateObject(object) => objects::create(cx, artifacts, object).await,
        Action::ApplyJobSet {
            over,
            held,
            recreated,
        } => job_set::apply(cx, artifacts, over.as_ref(), *held, *recreated).await,
        Action::Suspend { uid } => job_set::suspend(cx, uid).await,
        Action::Relocate(at) => job_set::relocate(cx, artifacts, at).await,
        Action::Resume(at) => job_set::resume(cx, artifacts, at).await,
        Action::DeleteJobSet(at) => job_set::delete(cx, at).await,
        Action::DeleteJob { name, uid } => jobs::delete(cx, name, uid.as_deref()).await,
        Action::NoteUnseenEnd => bookkeeping::note_unseen_end(cx),
        Action::Remember(last) => Ok(bookkeeping::remember(cx, last)),
        Action::UpdateMemory(update) => {
            artifacts.release();
            Ok(bookkeeping::update_memory(cx, *update))
        }
        Action::WriteStatus(status) => train_job::write_status(cx, status).await,
        Action::WriteError(error) => train_job::write_error(cx, error.as_ref()).await,
        Action::ForgetDeletedJobSet => Ok(bookkeeping::forget_deleted_job_set(cx)),
    }
}

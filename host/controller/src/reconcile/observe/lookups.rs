//! The objects that plugins look up while a TrainJob is rendered.

use std::sync::Arc;

use trainyard_model::lookup::Requester;

use crate::reconcile::{
    artifacts::Artifacts,
    context::Context,
    error::ReconcileError,
    observed::{Fact, Rendering},
    step::Basis,
};

/// Fetches the objects that plugins looked up in the last rendering.
pub(super) async fn get(
    cx: &Context<'_>,
    artifacts: &mut Artifacts,
    basis: Basis,
) -> Result<Fact, ReconcileError> {
    let job = artifacts.job()?.clone();
    let asker = Requester {
        name: &cx.key.name,
        uid: job.metadata.uid.as_deref(),
    };
    let large = artifacts.large();
    let pending = std::mem::take(&mut large.pending);
    let mut lookups = match large.lookups.take() {
        Some((of, lookups)) if of == basis => lookups,
        _ => return Err(ReconcileError::out_of_order("the lookups")),
    };
    let interests = &cx.reconciler.interests;
    for lookup in pending {
        let key = &lookup.key;
        interests.register(cx.key, key);
        let fetched = cx.reconciler.fetcher.fetch(&cx.key.namespace, asker, key);
        let fetched = cx.worker.free_if_slow(fetched).await?;
        interests.note_state(cx.key, key, fetched.seen);
        let Some(answer) = fetched.answer else {
            return Err(ReconcileError::NoObject(Box::new(lookup)));
        };
        Arc::make_mut(&mut lookups).insert(key.clone(), answer);
    }
    artifacts.large().lookups = Some((basis, lookups));
    Ok(Fact::Rendering(Rendering::LookedUp))
}

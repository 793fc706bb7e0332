//! An object beside a JobSet: whether it exists, and whose it is.

use crate::reconcile::bodies::Bodies;
use crate::reconcile::context::Context;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::object_ref::ObjectRef;
use crate::reconcile::observed::{Fact, Look};
use crate::reconcile::owner;

/// Asks for an object that a snapshot lists. Whoever wrote the list may have made its kind up: it has to be one that plugins emit.
pub(super) async fn listed(
    cx: &Context<'_>,
    bodies: &mut Bodies,
    object: &ObjectRef,
) -> Result<Fact, ReconcileError> {
    if !cx.reconciler.emitted.has(&object.kind) {
        return Ok(Fact::Object(Look::NotEmitted));
    }
    get(cx, bodies, object).await
}

/// Asks for the metadata of an object.
pub(super) async fn get(
    cx: &Context<'_>,
    bodies: &mut Bodies,
    object: &ObjectRef,
) -> Result<Fact, ReconcileError> {
    let ObjectRef { kind, name, .. } = object;
    let found = cx.emitted(kind).get_metadata_opt(name.as_str()).await;
    let found = found.map_err(|error| ReconcileError::api(format!("reading {object}"), error))?;
    let uid = &cx.job()?.uid;
    Ok(Fact::Object(match found.map(|found| found.metadata) {
        None => Look::Missing,
        Some(found) if owner::is_of(uid, &found) => {
            Look::Ours(found.resource_version.map(Into::into))
        }
        Some(found) => {
            let foreign = owner::foreign(&cx.key.name, kind.kind(), name.as_str(), &found);
            Look::Foreign(bodies.failure(foreign))
        }
    }))
}

//! The objects beside a JobSet: each is created if it is missing, and changed as its mode lets. One that another owner has is refused.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{Decided, Pending};
use crate::reconcile::observed::{AppliedObject, Look, Observed, RenderedObjectFacts};
use crate::reconcile::step::{Action, Observe, Step};

/// How far a JobSet is, for the objects beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is to be created, or has never run.
    Fresh,
    /// It has run, and is suspended.
    Suspended,
    /// It runs.
    Running,
}

impl Stage {
    /// Whether an object that exists may be changed.
    pub(super) fn lets_change(self, mode: ApplyMode) -> bool {
        match mode {
            ApplyMode::Once => false,
            ApplyMode::WithJobSet => self == Self::Fresh,
            ApplyMode::WhileSuspended => self != Self::Running,
            ApplyMode::Live => true,
        }
    }
}

/// Writes objects beside a JobSet, one after the other.
pub(super) fn write_all<'o>(
    o: &Observed,
    objects: impl IntoIterator<Item = &'o RenderedObjectFacts>,
    stage: Stage,
) -> Decided<Arc<[AppliedObject]>> {
    let written = objects.into_iter().map(|object| write(o, object, stage));
    written.collect()
}

/// Writes an object. One that exists and may not change is used as it is.
pub(super) fn write(
    o: &Observed,
    it: &RenderedObjectFacts,
    stage: Stage,
) -> Decided<AppliedObject> {
    let object = &it.object;
    let mode = object.apply;
    if let Some(applied) = &it.written {
        return Ok(AppliedObject {
            object: object.clone(),
            applied: applied.clone().filter(|_| mode == ApplyMode::Live),
        });
    }
    let create = Action::CreateObject(object.clone());
    let failed = o
        .failures
        .iter()
        .find(|(step, _)| *step == Step::Act(create.clone()));
    if let Some((_, failure)) = failed.filter(|(_, failure)| !failure.may_exist()) {
        return Err(Pending::Failed(failure.clone()));
    }
    // Before it is created, whatever its mode: a quota is asked, and counts, before the API server looks whether it exists.
    let look = o.known(&it.look, || Observe::Object(object.clone()))?;
    let force = match look {
        Look::Unusable(failure) => return Err(Pending::Failed(failure.clone())),
        Look::Ours(_) if stage.lets_change(mode) => true,
        // Two controllers at once have the same, and a Secret keeps its keys.
        Look::Ours(_) | Look::NotEmitted => {
            return Ok(AppliedObject {
                object: object.clone(),
                applied: None,
            });
        }
        // It may change later, and only what was applied loses what it had before.
        Look::Missing if stage.lets_change(mode) || mode == ApplyMode::WhileSuspended => false,
        Look::Missing => return o.act(create),
    };
    let object = object.clone();
    o.act(Action::ApplyObject { object, force })
}

//! The objects beside a JobSet. Each is created if it is missing, and changed as its mode allows. An object of another owner is an error.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{Decided, Pending};
use crate::reconcile::{
    last_reconcile::AppliedObject,
    observed::{ObjectState, Observed, RenderedObjectFacts},
    step::{Action, Observe, Step},
};

/// The stage of a JobSet, which decides what may change beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobSetStage {
    /// It is to be created, or has never run.
    Fresh,
    /// It has run, and is suspended.
    Suspended,
    /// It runs.
    Running,
}

impl JobSetStage {
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

/// Writes the objects beside a JobSet in order.
pub(super) fn write_all<'o>(
    o: &Observed,
    objects: impl IntoIterator<Item = &'o RenderedObjectFacts>,
    stage: JobSetStage,
) -> Decided<Arc<[AppliedObject]>> {
    let written = objects.into_iter().map(|object| write(o, object, stage));
    written.collect()
}

/// Writes an object, unless it exists and may not change.
pub(super) fn write(
    o: &Observed,
    it: &RenderedObjectFacts,
    stage: JobSetStage,
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
    // Read before it is created, whatever its mode, because quotas are charged before the API server checks whether the object exists.
    let state = o.known(&it.state, || Observe::Object(object.clone()))?;
    let force = match state {
        ObjectState::Unusable(failure) => return Err(Pending::Failed(failure.clone())),
        ObjectState::Ours(_) if stage.lets_change(mode) => true,
        // Another controller may have created it, and a Secret keeps its keys.
        ObjectState::Ours(_) | ObjectState::NotEmitted => {
            return Ok(AppliedObject {
                object: object.clone(),
                applied: None,
            });
        }
        // Applied rather than created, so that later changes can remove fields.
        ObjectState::Missing if stage.lets_change(mode) || mode == ApplyMode::WhileSuspended => {
            false
        }
        ObjectState::Missing => return o.act(create),
    };
    let object = object.clone();
    o.act(Action::ApplyObject { object, force })
}

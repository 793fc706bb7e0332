//! Remembers that everything is up to date, so that the next reconcile can skip what has not changed.

use std::sync::Arc;

use super::Decided;
use crate::{
    reconcile::{
        last_reconcile::{AppliedObject, LastReconcile},
        observed::{JobFacts, Observed},
        step::Action,
    },
    watch::{JobSetState, State as _},
};

/// Remembers that everything is up to date as of the current version of the JobSet.
pub(super) fn remember(
    o: &Observed,
    job: &JobFacts,
    objects: Option<Arc<[AppliedObject]>>,
) -> Decided<()> {
    remember_at(o, job, o.current.job_set(), objects)
}

/// Remembers that everything is up to date as of the version of the JobSet at which the objects were checked.
pub(super) fn remember_at(
    o: &Observed,
    job: &JobFacts,
    job_set: Option<&JobSetState>,
    objects: Option<Arc<[AppliedObject]>>,
) -> Decided<()> {
    if o.effects.remembered {
        return Ok(());
    }
    o.act(Action::Remember(LastReconcile {
        uid: job.uid.clone(),
        fingerprint: job.fingerprint,
        job_set: job_set.map(JobSetState::version),
        objects,
    }))
}

//! The placement of the pods of a suspended JobSet. When JobSet unsuspends Jobs, it adds the placement of the replicated job and removes
//! nothing. Jobs with entries that are not wanted are therefore deleted first, and JobSet recreates them.

use super::{Because as _, Decided, Pending, Report, Reports};
use crate::reconcile::{
    failure::{Finding, ReconcileFailure},
    observed::{LiveJobSet, Observed},
    step::{Action, Observe, PlacementSource, Reason},
};

/// Unsuspends a JobSet that has run, with the wanted placement.
pub(super) fn unsuspend(
    o: &Observed,
    live: &LiveJobSet,
    wanted: PlacementSource,
) -> Decided<Reports> {
    let mut reports = Reports::new();
    let placement = o.known(&o.observations.placement, || Observe::Placement(wanted))?;
    if placement.loses && !o.effects.relocated && (placement.moves || !placement.noted) {
        return o
            .act(Action::Relocate(live.at.clone()))
            .because(Reason::OldPlacement);
    }
    if placement.loses || o.effects.relocated {
        reports.extend(delete_old_jobs(o, live)?);
    }
    if !o.effects.job_set_written {
        return o.act(Action::Resume(live.at.clone()));
    }
    Ok(reports)
}

/// Deletes the Jobs of a suspended JobSet that still have removed entries.
pub(super) fn delete_old_jobs(o: &Observed, live: &LiveJobSet) -> Decided<Reports> {
    if !live.removed {
        return Ok(Reports::new());
    }
    let jobs = o.known_or_failure(&o.observations.jobs, || Observe::Jobs);
    let jobs = match jobs.because(Reason::OldPlacement)? {
        Ok(jobs) => jobs,
        // Without permission to list Jobs, the JobSet is unsuspended as JobSet allows.
        Err(failure) if failure.is_rejection() => return Ok(vec![Report::Failure(failure)]),
        Err(failure) => return Err(Pending::Failed(failure)),
    };
    if jobs.is_empty() {
        return Ok(Reports::new());
    }
    // Terminating pods have to be gone first, because their successors have the same names.
    let mut to_delete = jobs.iter().filter(|job| !live.active && !job.deleting);
    match to_delete.next() {
        Some(job) => {
            let (name, uid) = (job.name.clone(), job.uid.clone());
            let delete = Action::DeleteJob { name, uid };
            o.act(delete).because(Reason::OldPlacement)
        }
        None => Err(Pending::Failed(ReconcileFailure::Blocked(
            Finding::JobsHaveOldPlacement,
        ))),
    }
}

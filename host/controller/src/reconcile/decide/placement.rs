//! Where the pods of a suspended JobSet are placed. JobSet adds the placement of a replicated job to that of its Jobs when it unsuspends
//! them, and removes nothing: Jobs that have more than is wanted are deleted first, and JobSet creates them again.

use super::{Because as _, Decided, Pending, Report, Reports};
use crate::reconcile::failure::{Failure, Finding};
use crate::reconcile::observed::{LiveJobSet, Observed};
use crate::reconcile::step::{Action, Observe, Reason, Wanted};

/// Unsuspends a JobSet that has run, with its pods placed as wanted.
pub(super) fn unsuspend(o: &Observed, live: &LiveJobSet, wanted: Wanted) -> Decided<Reports> {
    let mut reports = Reports::new();
    let placement = o.known(&o.asked.placement, || Observe::Placement(wanted))?;
    if placement.loses && !o.done.relocated && (placement.moves || !placement.noted) {
        return o
            .act(Action::Relocate(live.at.clone()))
            .because(Reason::OldPlacement);
    }
    if placement.loses || o.done.relocated {
        reports.extend(without_old_jobs(o, live)?);
    }
    if !o.done.job_set_written {
        return o.act(Action::Resume(live.at.clone()));
    }
    Ok(reports)
}

/// Makes sure that no Job of a suspended JobSet has what was removed from the placement of its pods.
pub(super) fn without_old_jobs(o: &Observed, live: &LiveJobSet) -> Decided<Reports> {
    without(o, live).because(Reason::OldPlacement)
}

fn without(o: &Observed, live: &LiveJobSet) -> Decided<Reports> {
    if !live.removed {
        return Ok(Reports::new());
    }
    let jobs = match o.tried(&o.asked.jobs, || Observe::Jobs)? {
        Ok(jobs) => jobs,
        // Without the right to see them it goes on as JobSet lets it.
        Err(failure) if failure.is_refusal() => return Ok(vec![Report::Failure(failure)]),
        Err(failure) => return Err(Pending::Failed(failure)),
    };
    if jobs.is_empty() {
        return Ok(Reports::new());
    }
    // Pods that are about to end go first: their successors have the same names.
    let mut to_delete = jobs.iter().filter(|job| !live.active && !job.deleting);
    match to_delete.next() {
        Some(job) => o.act(Action::DeleteJob {
            name: job.name.clone(),
            uid: job.uid.clone(),
        }),
        None => Err(Pending::Failed(Failure::Found(
            Finding::JobsHaveOldPlacement,
        ))),
    }
}

//! A JobSet that runs is suspended: nothing else of it changes.

use super::{Decided, Pending, Report, Reports};
use crate::reconcile::observed::Observed;
use crate::reconcile::step::{Action, Mark, Observe};
use crate::watch::JobSetState;

/// Suspends the JobSet. Before that, its snapshot says that it has run.
pub(super) fn suspend(o: &Observed, found: &JobSetState) -> Decided<Reports> {
    let reports = mark(o)?;
    if !o.done.job_set_written {
        let uid = found.uid.clone();
        return o.act(Action::Suspend { uid });
    }
    Ok(reports)
}

/// Has the snapshot say that the JobSet has run. What does not allow that does not keep a JobSet from being suspended: it says itself
/// that it has run.
fn mark(o: &Observed) -> Decided<Reports> {
    let marks = o.tried(&o.asked.snapshot_marks, || Observe::SnapshotMarks)?;
    let failure = match marks {
        // There is none if the JobSet is older than snapshots are, or someone deleted it.
        Ok(None) => return Ok(Reports::new()),
        Ok(Some(marks)) => match &marks.foreign {
            Some(failure) => return Ok(vec![Report::Failure(failure.clone())]),
            None if marks.started => return Ok(Reports::new()),
            None => o.attempted(Action::MarkSnapshot {
                mark: Mark::STARTED,
                at: marks.at.clone(),
            })?,
        },
        Err(failure) => failure,
    };
    if failure.is_refusal() {
        Ok(vec![Report::Failure(failure)])
    } else {
        Err(Pending::Failed(failure))
    }
}

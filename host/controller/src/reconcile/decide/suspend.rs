//! Suspends a running JobSet. Nothing else of it changes.

use super::{Decided, Pending, Report, Reports};
use crate::{
    reconcile::{
        observed::Observed,
        step::{Action, Observe, SnapshotMark},
    },
    watch::JobSetState,
};

/// Suspends the JobSet after its snapshot is marked as started.
pub(super) fn suspend(o: &Observed, found: &JobSetState) -> Decided<Reports> {
    let reports = mark(o)?;
    if !o.effects.job_set_written {
        let uid = found.uid.clone();
        return o.act(Action::Suspend { uid });
    }
    Ok(reports)
}

/// Marks the snapshot as started. If that is not possible, the JobSet is suspended nevertheless: it is marked itself.
fn mark(o: &Observed) -> Decided<Reports> {
    let marks = o.known_or_failure(&o.observations.snapshot_marks, || Observe::SnapshotMarks)?;
    let failure = match marks {
        // There is no snapshot if the JobSet is older than snapshots, or the snapshot was deleted.
        Ok(None) => return Ok(Reports::new()),
        Ok(Some(marks)) => match &marks.foreign {
            Some(failure) => return Ok(vec![Report::Failure(failure.clone())]),
            None if marks.started => return Ok(Reports::new()),
            None => o.failure_of(Action::MarkSnapshot {
                mark: SnapshotMark::STARTED,
                at: marks.at.clone(),
            })?,
        },
        Err(failure) => failure,
    };
    if failure.is_rejection() {
        Ok(vec![Report::Failure(failure)])
    } else {
        Err(Pending::Failed(failure))
    }
}

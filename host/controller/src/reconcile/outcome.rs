//! How a reconcile ends.

use std::time::Duration;

use super::error::ReconcileError;
use crate::annotations::{INPUTS, STARTED};

/// How a reconcile ends.
#[derive(Debug, Default)]
pub(crate) struct ReconcileOutcome {
    /// When the TrainJob has to be reconciled again even if nothing changes, such as at its deadline.
    pub(crate) requeue_after: Option<Duration>,
    /// What did not stop the reconcile.
    pub(crate) reports: Vec<Report>,
    /// Why the reconcile failed, if it did.
    pub(crate) error: Option<ReconcileError>,
}

/// Returns what the pods wait for, if a report says it.
pub(crate) fn waits(reports: &[Report]) -> Option<&ReconcileError> {
    reports.iter().find_map(|report| match report {
        Report::Waits(error) => Some(error),
        _ => None,
    })
}

/// A problem that did not stop the reconcile. It is a warning for the TrainJob's author, unless it is only logged.
#[derive(Debug)]
pub(crate) enum Report {
    /// A warning of the rendering.
    Rendering(String),
    /// An error that did not stop the reconcile.
    Error(ReconcileError),
    /// The pods wait for an object of a plugin. It is shown like an error, and the reconcile did not fail.
    Waits(ReconcileError),
    /// Live objects are not updated, because the plan is pinned. It is only logged.
    NotFollowed(ReconcileError),
    /// The annotation about the error could not be written or removed. It is only logged.
    NotAnnotated(ReconcileError),
    /// The JobSet is marked as started, but has the digest of its inputs like one that has never run.
    BothMarks,
}

impl Report {
    /// Returns the warning for the author of the TrainJob with that name; `None` if it is only logged.
    pub(crate) fn warning(&self, job: &str) -> Option<String> {
        match self {
            Self::Rendering(warning) => Some(warning.clone()),
            Self::Error(error) | Self::Waits(error) => Some(error.to_string()),
            Self::NotFollowed(_) | Self::NotAnnotated(_) => None,
            Self::BothMarks => Some(format!(
                "JobSet `{job}`: metadata.annotations: has {STARTED}, which only the controller sets, beside {INPUTS}, so it is treated as one that has run and does not follow the TrainJob; delete the JobSet to have it recreated"
            )),
        }
    }
}

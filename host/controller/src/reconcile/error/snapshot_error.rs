//! Errors of snapshots.

use thiserror::Error;
use trainyard_model::reserved;

use crate::annotations::SNAPSHOT;

/// Why a snapshot cannot be used.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Its content cannot be parsed.
    #[error(
        "ConfigMap `{name}`, key `{key}`: {problem}; delete the ConfigMap to have it recreated"
    )]
    Unreadable {
        /// The ConfigMap.
        name: String,
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// It holds another runtime than the one that the TrainJob references.
    #[error(
        "ConfigMap `{name}` holds {found}, but the TrainJob references {wanted}; delete the ConfigMap to have it recreated"
    )]
    OtherRuntime {
        /// The ConfigMap.
        name: String,
        /// Kind and name in it.
        found: String,
        /// Kind and name in the TrainJob.
        wanted: String,
    },
    /// Its content is not what the controller wrote.
    #[error(
        "ConfigMap `{name}`: data: another client changed it: its digest differs from the one in the annotation {SNAPSHOT} of JobSet `{job}`; its content is not used; delete the ConfigMap to have it recreated from the current runtime"
    )]
    Changed {
        /// The ConfigMap.
        name: String,
        /// The TrainJob.
        job: String,
    },
    /// Nothing shows whether its content is what the controller wrote, and it cannot be replaced.
    #[error(
        "ConfigMap `{name}`: data: its content cannot be verified, because the JobSet with its digest was deleted before the controller started, and cannot be replaced, because it is immutable; it differs from the current runtime; delete the ConfigMap to have it recreated from the current runtime"
    )]
    Unproven {
        /// The ConfigMap.
        name: String,
    },
}

impl SnapshotError {
    /// Returns the error of a TrainJob whose snapshot another client changed.
    pub(crate) fn changed(job: &str) -> Self {
        let (name, job) = (reserved::runtime_snapshot(job), job.to_owned());
        Self::Changed { name, job }
    }

    /// Returns the error of a TrainJob whose snapshot cannot be replaced.
    pub(crate) fn unproven(job: &str) -> Self {
        Self::Unproven {
            name: reserved::runtime_snapshot(job),
        }
    }
}

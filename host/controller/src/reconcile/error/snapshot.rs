//! Errors of snapshots.

use thiserror::Error;

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
}

//! Errors of snapshots.

use thiserror::Error;

/// A snapshot that can't be used.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The ConfigMap of that name belongs to another owner.
    #[error(
        "ConfigMap `{name}` is not this TrainJob's: it is {owner}; delete it, or give the TrainJob another name"
    )]
    Foreign {
        /// The ConfigMap.
        name: String,
        /// The owner.
        owner: String,
    },
    /// Its content cannot be parsed.
    #[error("ConfigMap `{name}`, key `{key}`: {problem}; delete it, and it is recreated")]
    Unreadable {
        /// The ConfigMap.
        name: String,
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// It holds another runtime than that of the TrainJob.
    #[error(
        "ConfigMap `{name}` holds {found}, and the TrainJob names {wanted}; delete it, and it is recreated"
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

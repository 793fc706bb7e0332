//! The TrainJobs whose last reconcile failed, and how often it failed so.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{queue::NamespacedName, reconcile::ReconcileError};

/// The last failure of each TrainJob that fails.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    last: Mutex<HashMap<NamespacedName, Repeated>>,
    hasher: RandomState,
}

/// An error of a TrainJob, each time that it was met in a row.
#[derive(Debug)]
struct Repeated {
    cause: FailureCause,
    /// Of the error's text.
    hash: u64,
    times: u32,
}

/// Why a TrainJob fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureCause {
    /// The error's reason.
    pub(crate) reason: &'static str,
    /// Whether the error lasts until the TrainJob, its runtime or a plugin is corrected.
    pub(crate) is_refusal: bool,
}

impl Failures {
    /// Notes a failure. Returns how many times in a row the TrainJob has failed with the same error.
    pub(crate) fn note(&self, key: &NamespacedName, error: &ReconcileError) -> u32 {
        let hash = self.hasher.hash_one(error.to_string());
        let cause = FailureCause {
            reason: error.reason(),
            is_refusal: error.is_refusal(),
        };
        let mut last = self.last();
        let before = last.get(key).filter(|before| before.hash == hash);
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        last.insert(key.clone(), Repeated { cause, hash, times });
        times
    }

    /// Forgets the failures of a TrainJob.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.last().remove(key);
    }

    /// Why a TrainJob fails; `None` if it does not.
    pub(crate) fn cause(&self, key: &NamespacedName) -> Option<FailureCause> {
        self.last().get(key).map(|last| last.cause)
    }

    fn last(&self) -> MutexGuard<'_, HashMap<NamespacedName, Repeated>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_in_a_row_is_counted() {
        let failures = Failures::default();
        let key = NamespacedName::new("a", "one");
        let error = |name: &str| ReconcileError::NoRuntime {
            kind: "ClusterTrainingRuntime".to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(failures.note(&key, &error("a")), 1);
        assert_eq!(failures.note(&key, &error("a")), 2);
        assert_eq!(
            failures.note(&NamespacedName::new("a", "two"), &error("a")),
            1
        );
        assert_eq!(failures.note(&key, &error("b")), 1);
        let cause = failures.cause(&key).map(|cause| cause.reason);
        assert_eq!(cause, Some("RuntimeNotFound"));
        failures.forget(&key);
        assert_eq!(failures.cause(&key), None);
        assert_eq!(failures.note(&key, &error("b")), 1);
    }
}

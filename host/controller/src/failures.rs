//! The TrainJobs whose last reconcile failed, with the number of repetitions of the error.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    queue::NamespacedName,
    reconcile::{ReconcileError, StoppedBy},
};

/// How often an error that does not change is logged in full: logs are rotated.
const IN_FULL: Duration = Duration::from_secs(60 * 60);

/// The last failure of each TrainJob that fails.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    last: Mutex<HashMap<NamespacedName, RepeatedFailure>>,
    hasher: RandomState,
}

/// An error of a TrainJob, with its repetitions in a row.
#[derive(Debug)]
struct RepeatedFailure {
    cause: FailureCause,
    by: StoppedBy,
    /// Of the error's text.
    hash: u64,
    times: u32,
    /// When it was logged in full.
    logged: Option<Instant>,
}

/// Why a TrainJob fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureCause {
    /// The error's reason.
    pub(crate) reason: &'static str,
    /// Whether the error lasts until the TrainJob, its runtime or a plugin is corrected.
    pub(crate) needs_correction: bool,
}

impl Failures {
    /// Notes a failure, and returns how many times in a row the TrainJob has failed with the same error.
    pub(crate) fn note(&self, key: &NamespacedName, error: &ReconcileError) -> u32 {
        let hash = self.hasher.hash_one(error.to_string());
        let cause = FailureCause {
            reason: error.reason(),
            needs_correction: error.needs_correction(),
        };
        let mut last = self.last();
        let before = last.get(key).filter(|before| before.hash == hash);
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        let repeated = RepeatedFailure {
            cause,
            by: StoppedBy::of(error),
            hash,
            times,
            logged: before.and_then(|before| before.logged),
        };
        last.insert(key.clone(), repeated);
        times
    }

    /// Whether the last failure, which is about to be logged, is due to be logged in full. If it is, it counts as logged now.
    pub(crate) fn take_due(&self, key: &NamespacedName, now: Instant) -> bool {
        let mut last = self.last();
        let Some(last) = last.get_mut(key) else {
            return true;
        };
        let is_recent = |logged| now.duration_since(logged) < IN_FULL;
        let is_due = !last.logged.is_some_and(is_recent);
        if is_due {
            last.logged = Some(now);
        }
        is_due
    }

    /// Forgets the failures of a TrainJob.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.last().remove(key);
    }

    /// Returns why a TrainJob fails; `None` if it does not.
    pub(crate) fn cause(&self, key: &NamespacedName) -> Option<FailureCause> {
        self.last().get(key).map(|last| last.cause)
    }

    /// Returns what stops a TrainJob; `None` if it does not fail.
    pub(crate) fn stopped_by(&self, key: &NamespacedName) -> Option<StoppedBy> {
        self.last().get(key).map(|last| last.by)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.last().len()
    }

    fn last(&self) -> MutexGuard<'_, HashMap<NamespacedName, RepeatedFailure>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str) -> ReconcileError {
        ReconcileError::NoRuntime {
            kind: "ClusterTrainingRuntime".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_same_error_in_a_row_is_counted() {
        let failures = Failures::default();
        let times = |key: &NamespacedName, name| failures.note(key, &error(name));
        let key = NamespacedName::new("a", "one");
        assert_eq!(times(&key, "a"), 1);
        assert_eq!(times(&key, "a"), 2);
        assert_eq!(times(&NamespacedName::new("a", "two"), "a"), 1);
        assert_eq!(times(&key, "b"), 1);
        let cause = failures.cause(&key).map(|cause| cause.reason);
        assert_eq!(cause, Some("RuntimeNotFound"));
        failures.forget(&key);
        assert_eq!(failures.cause(&key), None);
        assert_eq!(times(&key, "b"), 1);
    }

    #[test]
    fn refusals_of_the_api_server_are_told_from_a_quota_and_an_outage() {
        let api = |code, message: &str| {
            let status = kube::core::Status::failure(message, "").with_code(code);
            ReconcileError::api("writing JobSet `a`", kube::Error::Api(status.boxed()))
        };
        let not_served = ReconcileError::NotServed {
            api_version: "a/v1".to_owned(),
            kind: "B".to_owned(),
            name: "a".to_owned(),
        };
        for (error, by) in [
            (api(403, "user cannot create"), StoppedBy::ApiServer),
            (api(422, "is invalid"), StoppedBy::ApiServer),
            (not_served, StoppedBy::ApiServer),
            (api(403, "exceeded quota: gpus"), StoppedBy::Other),
            (api(503, "try again"), StoppedBy::Other),
            (super::tests::error("a"), StoppedBy::Other),
        ] {
            assert_eq!(StoppedBy::of(&error), by, "{error}");
        }
    }

    #[test]
    fn unchanged_errors_are_logged_in_full_once_an_hour() {
        let failures = Failures::default();
        let start = Instant::now();
        let key = NamespacedName::new("a", "one");
        for (minutes, name, is_due) in [
            (0, "a", true),
            (5, "a", false),
            (10, "b", true),
            (65, "b", false),
            (70, "b", true),
            (75, "b", false),
            (131, "b", true),
        ] {
            let now = start + Duration::from_secs(minutes * 60);
            failures.note(&key, &error(name));
            assert_eq!(failures.take_due(&key, now), is_due, "{minutes}");
        }
    }

    #[test]
    fn an_error_that_was_not_logged_yet_is_due() {
        let failures = Failures::default();
        let now = Instant::now();
        let key = NamespacedName::new("a", "one");
        for _ in 0..3 {
            failures.note(&key, &error("a"));
        }
        assert!(failures.take_due(&key, now));
        failures.note(&key, &error("a"));
        assert!(!failures.take_due(&key, now));
    }
}

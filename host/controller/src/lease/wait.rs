//! Why a candidate waits for the Lease, and when that is a problem.

use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;

use crate::kubernetes::code;

/// How often a problem with the Lease is logged while it lasts.
const PROBLEM_EVERY: Duration = Duration::from_secs(60);

/// How long a candidate waits behind another controller before that is a problem.
const FOREIGN_AFTER: Duration = Duration::from_secs(300);

/// The digits at the end of an identity, which client-go ends with a UUID.
const DIGITS: usize = 16;

/// Returns an identity that is unique to this run of the process.
#[must_use]
pub fn identity(process: &str) -> String {
    format!("{process}_{:0DIGITS$x}", fastrand::u64(..))
}

/// Whether the identity is one of Trainyard.
fn is_of_trainyard(identity: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    identity
        .rsplit_once('_')
        .is_some_and(|(_, end)| end.len() == DIGITS && end.bytes().all(is_digit))
}

/// Why an attempt failed.
#[derive(Debug, Error)]
pub(super) enum LeaseError {
    #[error("{0}")]
    Api(#[from] kube::Error),
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
}

impl LeaseError {
    /// Whether the API server refused the call, such as for a missing permission, so that a retry alone does not help.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Api(error) => {
                matches!(code(error), Some(400..=499))
                    && !matches!(code(error), Some(408 | 409 | 429))
            }
            Self::NoAnswer(_) => false,
        }
    }
}

/// Why a candidate waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Whether no replica of Trainyard leads, and this one cannot.
    pub(super) is_problem: bool,
    /// Whether the candidate could lead if no other one did.
    pub(super) is_ready: bool,
    pub(super) reason: String,
}

impl Wait {
    /// The wait of a candidate that stands by, or the end of a wait.
    pub(super) fn normal(reason: String) -> Self {
        Self {
            is_problem: false,
            is_ready: true,
            reason,
        }
    }

    /// The wait of a candidate that could not lead even if no other one did.
    pub(super) fn unready(reason: String) -> Self {
        Self {
            is_problem: true,
            is_ready: false,
            reason,
        }
    }

    /// The wait before the first answer. Whether the candidate could lead is not known yet.
    pub(super) fn unanswered() -> Self {
        Self {
            is_problem: false,
            is_ready: false,
            reason: "no answer yet".to_owned(),
        }
    }

    /// The wait after a failed attempt, so long after the last answer. Without an answer, a candidate stays as it was for the lease duration.
    pub(super) fn after(self, error: &LeaseError, unanswered: Duration, lease: Duration) -> Self {
        let reason = error.to_string();
        if error.is_refusal() || unanswered >= lease {
            Self::unready(reason)
        } else {
            Self { reason, ..self }
        }
    }
}

/// Since when another controller has held the Lease and renewed it.
#[derive(Debug, Default)]
pub(super) struct ForeignHolder(Option<Instant>);

impl ForeignHolder {
    /// Returns the wait behind a holder that renews the Lease.
    pub(super) fn wait(&mut self, holder: &str) -> Wait {
        if is_of_trainyard(holder) {
            self.0 = None;
            return Wait::normal(format!("it is held by {holder}"));
        }
        let since = self.0.get_or_insert_with(Instant::now);
        if since.elapsed() < FOREIGN_AFTER {
            return Wait::normal(format!("it is held by {holder}"));
        }
        Wait {
            is_problem: true,
            is_ready: true,
            reason: format!(
                "it is held by {holder}, which renews it and is not a replica of Trainyard; remove that controller, or this one"
            ),
        }
    }
}

/// The wait that was logged last.
#[derive(Debug, Default)]
pub(super) struct WaitLog(Option<(Wait, Instant)>);

impl WaitLog {
    /// Whether a line about the wait is due: at once if it has changed, and repeatedly if it is a problem.
    pub(super) fn is_due(&mut self, wait: &Wait) -> bool {
        let is_due = match &self.0 {
            Some((last, at)) => last != wait || wait.is_problem && at.elapsed() >= PROBLEM_EVERY,
            None => true,
        };
        if is_due {
            self.0 = Some((wait.clone(), Instant::now()));
        }
        is_due
    }
}

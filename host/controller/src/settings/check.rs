//! What no schema can say of a configuration file.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;

use super::LeaderElection;
use crate::serve::BindAddress;

/// How much longer than a retry period, jitter included, the renew deadline has to be.
const JITTER: f64 = 1.2;

const RENDER_TIMEOUT: &str = "/controller/renderTimeout";

/// A JSON pointer, and what is wrong there.
pub(super) type Wrong = (String, String);

/// What is wrong with a value, beside what its schema has found.
pub(super) fn check(value: &Value, found: &[Wrong]) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for pointer in ["/metrics/bindAddress", "/health/healthProbeBindAddress"] {
        if let Some(address) = value.pointer(pointer).and_then(Value::as_str)
            && let Err(error) = address.parse::<BindAddress>()
        {
            wrong.push((pointer.to_owned(), error.to_string()));
        }
    }
    leader_election(value, found, &mut wrong);
    let timeout = duration(value, found, RENDER_TIMEOUT, Duration::MAX);
    if timeout.is_some_and(|timeout| timeout < Duration::from_secs(1)) {
        let text = "is shorter than a second".to_owned();
        wrong.push((RENDER_TIMEOUT.to_owned(), text));
    }
    wrong
}

/// The duration at a pointer, or the default. None where the schema refuses it: it may be no duration, or more than one can hold.
fn duration(value: &Value, found: &[Wrong], pointer: &str, default: Duration) -> Option<Duration> {
    match value.pointer(pointer) {
        None => Some(default),
        Some(_) if found.iter().any(|(there, _)| there == pointer) => None,
        Some(value) => kube::core::Duration::deserialize(value)
            .ok()
            .map(Into::into),
    }
}

fn leader_election(value: &Value, found: &[Wrong], wrong: &mut Vec<Wrong>) {
    const LEASE: &str = "/leaderElection/leaseDuration";
    const RENEW: &str = "/leaderElection/renewDeadline";
    const RETRY: &str = "/leaderElection/retryPeriod";
    let default = LeaderElection::default();
    let duration = |pointer: &str, default| duration(value, found, pointer, default);
    let lease = duration(LEASE, default.lease_duration);
    let renew = duration(RENEW, default.renew_deadline);
    let retry = duration(RETRY, default.retry_period);
    let mut push = |pointer: &str, text: String| wrong.push((pointer.to_owned(), text));
    if lease.is_some_and(|lease| lease < Duration::from_secs(1)) {
        push(LEASE, "is shorter than a second".to_owned());
    }
    if retry.is_some_and(|retry| retry.is_zero()) {
        push(RETRY, "is zero".to_owned());
    }
    if let (Some(lease), Some(renew)) = (lease, renew)
        && renew >= lease
    {
        let text = format!("{renew:?} is not less than leaseDuration, {lease:?}");
        push(RENEW, text);
    }
    if let (Some(renew), Some(retry)) = (renew, retry)
        && retry.mul_f64(JITTER) >= renew
    {
        let text = format!(
            "{retry:?} is too long for a renewDeadline of {renew:?}, which has to be more than {JITTER} times that"
        );
        push(RETRY, text);
    }
}

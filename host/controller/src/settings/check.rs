//! Checks that a JSON Schema cannot express.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_config::Fault;

use super::LeaderElection;
use crate::serve::BindAddress;

/// The minimum ratio of the renew deadline to the retry period, which has a jitter.
const JITTER: f64 = 1.2;

const RENDER_TIMEOUT: &str = "/controller/renderTimeout";

/// Returns the errors of a value that its schema cannot express. `found` are the errors of the schema.
pub(super) fn check(value: &Value, found: &[Fault]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for pointer in ["/metrics/bindAddress", "/health/healthProbeBindAddress"] {
        if let Some(address) = value.pointer(pointer).and_then(Value::as_str)
            && let Err(error) = address.parse::<BindAddress>()
        {
            faults.push(fault(pointer, error.to_string()));
        }
    }
    leader_election(value, found, &mut faults);
    let timeout = duration(value, found, RENDER_TIMEOUT, Duration::MAX);
    faults.extend(at_least_a_second(RENDER_TIMEOUT, timeout));
    faults
}

fn fault(pointer: &str, problem: String) -> Fault {
    Fault {
        field: FieldPath::root().below_pointer(pointer),
        problem,
    }
}

/// Returns the duration at a pointer, or the default; `None` if the schema has refused it, or if it is too long for a `Duration`.
fn duration(value: &Value, found: &[Fault], pointer: &str, default: Duration) -> Option<Duration> {
    let field = FieldPath::root().below_pointer(pointer);
    match value.pointer(pointer) {
        None => Some(default),
        Some(_) if found.iter().any(|fault| fault.field == field) => None,
        Some(value) => kube::core::Duration::deserialize(value)
            .ok()
            .map(Into::into),
    }
}

fn at_least_a_second(pointer: &str, duration: Option<Duration>) -> Option<Fault> {
    let duration = duration.filter(|duration| *duration < Duration::from_secs(1))?;
    let problem = format!("must be at least 1s; found {duration:?}");
    Some(fault(pointer, problem))
}

fn leader_election(value: &Value, found: &[Fault], faults: &mut Vec<Fault>) {
    const LEASE: &str = "/leaderElection/leaseDuration";
    const RENEW: &str = "/leaderElection/renewDeadline";
    const RETRY: &str = "/leaderElection/retryPeriod";
    let default = LeaderElection::default();
    let duration = |pointer: &str, default| duration(value, found, pointer, default);
    let lease = duration(LEASE, default.lease_duration);
    let renew = duration(RENEW, default.renew_deadline);
    let retry = duration(RETRY, default.retry_period);
    faults.extend(at_least_a_second(LEASE, lease));
    if retry.is_some_and(|retry| retry.is_zero()) {
        let problem = "must be longer than 0s; found 0s".to_owned();
        faults.push(fault(RETRY, problem));
    }
    if let (Some(lease), Some(renew)) = (lease, renew)
        && renew >= lease
    {
        let problem =
            format!("must be shorter than leaseDuration, which is {lease:?}; found {renew:?}");
        faults.push(fault(RENEW, problem));
    }
    if let (Some(renew), Some(retry)) = (renew, retry)
        && retry.mul_f64(JITTER) >= renew
    {
        let problem = format!(
            "is {retry:?}; renewDeadline, which is {renew:?}, must be more than {JITTER} times as long"
        );
        faults.push(fault(RETRY, problem));
    }
}

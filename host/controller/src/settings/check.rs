//! Checks that a JSON Schema cannot express.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_config::{FieldError, RenderingSettings};
use trainyard_oci::Signers;

use super::{FeatureGate, LeaderElection, plugins};
use crate::{serve::BindAddress, spans::Endpoint};

/// The minimum ratio of the renew deadline to the retry period, which has a jitter.
const JITTER: f64 = 1.2;

const RENDER_TIMEOUT: &str = "/controller/renderTimeout";

const INTERVAL: &str = "/plugins/rollout/interval";

const ENDPOINT: &str = "/tracing/endpoint";

/// Returns the errors of a value that its schema cannot express. `found` are the errors of the schema.
pub(super) fn check(value: &Value, found: &[FieldError]) -> Vec<FieldError> {
    let mut field_errors = Vec::new();
    for pointer in ["/metrics/bindAddress", "/health/healthProbeBindAddress"] {
        if let Some(address) = value.pointer(pointer).and_then(Value::as_str)
            && let Err(error) = address.parse::<BindAddress>()
        {
            field_errors.push(field_error(pointer, error.to_string()));
        }
    }
    if let Some(endpoint) = value.pointer(ENDPOINT).and_then(Value::as_str)
        && let Err(error) = endpoint.parse::<Endpoint>()
    {
        field_errors.push(field_error(ENDPOINT, error.to_string()));
    }
    let gates = value.get("featureGates").and_then(Value::as_object);
    for name in gates.into_iter().flat_map(|gates| gates.keys()) {
        // The schema of Trainyard's own file lists its gates.
        let field = FieldPath::of(["featureGates"]).field(name);
        let is_new = found.iter().all(|found| found.field != field);
        if let (Err(error), true) = (name.parse::<FeatureGate>(), is_new) {
            field_errors.push(FieldError {
                field,
                problem: error.to_string(),
            });
        }
    }
    if let Some(plugins) = value.get("plugins") {
        field_errors.extend(Signers::check(plugins, &FieldPath::of(["plugins"])));
    }
    leader_election(value, found, &mut field_errors);
    certificate(value, &mut field_errors);
    field_errors.extend(plugins::check(value));
    let interval = duration(value, found, INTERVAL, Duration::MAX);
    field_errors.extend(at_least_a_second(INTERVAL, interval));
    if let Some(rendering) = value.get("rendering") {
        let at = FieldPath::of(["rendering"]);
        field_errors.extend(RenderingSettings::field_errors(rendering, &at));
    }
    let timeout = duration(value, found, RENDER_TIMEOUT, Duration::MAX);
    field_errors.extend(at_least_a_second(RENDER_TIMEOUT, timeout));
    field_errors
}

fn field_error(pointer: &str, problem: String) -> FieldError {
    FieldError {
        field: FieldPath::root().below_pointer(pointer),
        problem,
    }
}

/// Returns the duration at a pointer, or the default; `None` if the schema has refused it, or if it is too long for a `Duration`.
fn duration(
    value: &Value,
    found: &[FieldError],
    pointer: &str,
    default: Duration,
) -> Option<Duration> {
    let field = FieldPath::root().below_pointer(pointer);
    match value.pointer(pointer) {
        None => Some(default),
        Some(_) if found.iter().any(|field_error| field_error.field == field) => None,
        Some(value) => kube::core::Duration::deserialize(value)
            .ok()
            .map(Into::into),
    }
}

fn at_least_a_second(pointer: &str, duration: Option<Duration>) -> Option<FieldError> {
    let duration = duration.filter(|duration| *duration < Duration::from_secs(1))?;
    let problem = format!("must be at least 1s; found {duration:?}");
    Some(field_error(pointer, problem))
}

fn certificate(value: &Value, field_errors: &mut Vec<FieldError>) {
    const AUTH: &str = "/metrics/auth/enabled";
    const ENABLE: &str = "/certManagement/enable";
    let is = |pointer: &str| value.pointer(pointer).and_then(Value::as_bool);
    // In the reference's file, the default is true.
    let default = value.get("kind").and_then(Value::as_str) == Some("Configuration");
    if is(ENABLE) == Some(true) && value.pointer("/webhook/certDir").is_some() {
        let problem = "is true, but webhook.certDir is set, too; remove one of the two";
        field_errors.push(field_error(ENABLE, problem.to_owned()));
    }
    if is(AUTH) == Some(true) && !is("/metrics/secureServing").unwrap_or(default) {
        let problem = "is true, but metrics.secureServing is false: tokens would be sent over plain HTTP; \
                       set metrics.secureServing to true";
        field_errors.push(field_error(AUTH, problem.to_owned()));
    }
}

fn leader_election(value: &Value, found: &[FieldError], field_errors: &mut Vec<FieldError>) {
    const LEASE: &str = "/leaderElection/leaseDuration";
    const RENEW: &str = "/leaderElection/renewDeadline";
    const RETRY: &str = "/leaderElection/retryPeriod";
    let default = LeaderElection::default();
    let duration = |pointer: &str, default| duration(value, found, pointer, default);
    let lease = duration(LEASE, default.lease_duration);
    let renew = duration(RENEW, default.renew_deadline);
    let retry = duration(RETRY, default.retry_period);
    field_errors.extend(at_least_a_second(LEASE, lease));
    if retry.is_some_and(|retry| retry.is_zero()) {
        let problem = "must be longer than 0s; found 0s".to_owned();
        field_errors.push(field_error(RETRY, problem));
    }
    if let (Some(lease), Some(renew)) = (lease, renew)
        && renew >= lease
    {
        let problem =
            format!("must be shorter than leaseDuration, which is {lease:?}; found {renew:?}");
        field_errors.push(field_error(RENEW, problem));
    }
    if let (Some(renew), Some(retry)) = (renew, retry)
        && retry.mul_f64(JITTER) >= renew
    {
        let problem = format!(
            "is {retry:?}; renewDeadline, which is {renew:?}, must be more than {JITTER} times as long"
        );
        field_errors.push(field_error(RETRY, problem));
    }
}

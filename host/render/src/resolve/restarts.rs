//! Jobs that replace the wrong nodes after a failure: all of them, although elastic training could go on, or one alone, although the group
//! has to restart as a whole.

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, ancestor::Ancestor, names, runtime::Member};

use super::template;
use crate::{
    json::items,
    problem::{InputObject, Warning},
};

/// The condition of a pod that is evicted, such as by a drained machine.
const DISRUPTION: &str = "DisruptionTarget";

/// The policies whose processes form one group of a fixed size, which has to start again as a whole.
const FIXED_GROUPS: [&str; 4] = ["flux", "jax", "torch", "xgboost"];

/// Returns a warning if the trainer's Job replaces the wrong nodes. Plugins can read `backoffLimit`, but neither `podFailurePolicy` nor the
/// JobSet's `failurePolicy`, so the SDK leaves the limit of in-place restarts to this check.
pub(super) fn warning(runtime: &Runtime, nodes: u32) -> Option<Warning> {
    let Member::Key(policy) = runtime.ml_policy.as_ref()?.member.as_ref()? else {
        return None;
    };
    let mut elastic = ["elastic", "elasticPolicy"].into_iter();
    let is_elastic = elastic.any(|field| policy.config.get(field).is_some());
    if !is_elastic && (nodes < 2 || !FIXED_GROUPS.contains(&policy.key.as_str())) {
        return None;
    }
    let spec = &runtime.template.spec;
    let jobs = items(spec, "replicatedJobs").iter();
    let (at, job) = jobs.enumerate().find(|(_, job)| is_trainer(job))?;
    let job = job.pointer("/template/spec")?;
    let (field, message) = if is_elastic {
        replaces_all(job)?
    } else if is_in_place(spec) {
        return None;
    } else {
        replaces_one(job)?
    };
    let path = template::replicated_jobs()
        .index(at)
        .fields(["template", "spec"]);
    Some(Warning {
        about: InputObject::Runtime,
        field: Some(path.join(&field).to_string()),
        message: message.to_owned(),
        plugin: None,
    })
}

/// Returns what makes the Job of elastic training replace all nodes, and what to do.
fn replaces_all(job: &Value) -> Option<(FieldPath, &'static str)> {
    let (field, action) = evicted(job)?;
    let message = "is `FailJob`, so if one node is evicted, all nodes are replaced, although elastic training could go on without it; set it to `Ignore`, which replaces only that node";
    (action == "FailJob").then_some((field, message))
}

/// Returns what makes the Job of a fixed group replace one node alone, and what to do.
fn replaces_one(job: &Value) -> Option<(FieldPath, &'static str)> {
    match evicted(job) {
        Some((field, "Ignore")) => Some((
            field,
            "is `Ignore`, so a node that is evicted is replaced alone, while the others wait for it until they time out; set it to `FailJob`, so that all nodes restart; if evictions should not count as restarts, add a rule with the action `RestartJobSetAndIgnoreMaxRestarts` to the JobSet's `failurePolicy`",
        )),
        _ if restarts_in_place(job) => Some((
            FieldPath::of(["backoffLimit"]),
            "is 2147483647, so a node that fails is restarted alone, while the others wait for it until they time out; set it to 0, so that all nodes restart, as often as the JobSet's `failurePolicy.maxRestarts` allows, or, if JobSet's feature gate InPlaceRestart is enabled, set `failurePolicy.restartStrategy: InPlaceRestart`",
        )),
        _ => None,
    }
}

/// Returns the action for evicted pods in a Job's `podFailurePolicy`, and its field: that of the first rule that matches them.
fn evicted(job: &Value) -> Option<(FieldPath, &str)> {
    let rules = items(job.get("podFailurePolicy")?, "rules");
    let position = rules.iter().position(is_for_evictions)?;
    let action = rules.get(position)?.get("action")?.as_str()?;
    let rules = FieldPath::of(["podFailurePolicy", "rules"]);
    Some((rules.index(position).field("action"), action))
}

/// Whether the Job restarts pods without a limit, which JobSet's in-place restarts require.
fn restarts_in_place(job: &Value) -> bool {
    job.get("backoffLimit").and_then(Value::as_i64) == Some(i64::from(i32::MAX))
}

/// Whether JobSet restarts all pods of a failed group in place.
fn is_in_place(spec: &Value) -> bool {
    let strategy = spec.pointer("/failurePolicy/restartStrategy");
    strategy.is_some_and(|strategy| strategy == "InPlaceRestart")
}

fn is_trainer(job: &Value) -> bool {
    Ancestor::of(job).is_some_and(|ancestor| ancestor.step == names::ANCESTOR_TRAINER)
}

fn is_for_evictions(rule: &Value) -> bool {
    items(rule, "onPodConditions").iter().any(|condition| {
        let is_true = condition
            .get("status")
            .is_none_or(|status| status == "True");
        is_true && condition.get("type").and_then(Value::as_str) == Some(DISRUPTION)
    })
}

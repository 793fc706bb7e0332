//! Elastic training whose Job fails as a whole if one node is evicted.

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, ancestor::Ancestor, names, runtime::Member};

use super::template;
use crate::{
    json::items,
    problem::{InputObject, Warning},
};

/// The condition of a pod that is evicted, such as by a drained machine.
const DISRUPTION: &str = "DisruptionTarget";

/// Returns a warning if the trainer's `podFailurePolicy` fails the Job with an evicted pod, so that all nodes are replaced although the
/// others could go on. Plugins cannot read this policy.
pub(super) fn end_the_job(runtime: &Runtime) -> Option<Warning> {
    let Member::Key(policy) = runtime.ml_policy.as_ref()?.member.as_ref()? else {
        return None;
    };
    let mut elastic = ["elastic", "elasticPolicy"].into_iter();
    if !elastic.any(|field| policy.config.get(field).is_some()) {
        return None;
    }
    let jobs = items(&runtime.template.spec, "replicatedJobs").iter();
    let (at, job) = jobs.enumerate().find(|(_, job)| is_trainer(job))?;
    let policy = job.pointer("/template/spec/podFailurePolicy")?;
    // The first rule that matches applies.
    let (rule, applied) = items(policy, "rules")
        .iter()
        .enumerate()
        .find(|(_, rule)| is_for_evictions(rule))?;
    if applied.get("action")?.as_str()? != "FailJob" {
        return None;
    }
    let in_job = ["template", "spec", "podFailurePolicy", "rules"];
    let path = template::replicated_jobs().index(at).fields(in_job);
    let path: FieldPath = path.index(rule).field("action");
    Some(Warning {
        about: InputObject::Runtime,
        field: Some(path.to_string()),
        message: "is `FailJob`, so if one node is evicted, all nodes are replaced, although elastic training could go on without it; set it to `Ignore`, which replaces only that node".to_owned(),
        plugin: None,
    })
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

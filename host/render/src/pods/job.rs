//! The Jobs of a JobSet, without their pods.

use serde_json::Value;
use trainyard_api::StackPath;

use super::{NOT_NEGATIVE, PodProblems};
use crate::json::{get, get_at, items, text};

/// Checks the spec of a Job.
pub(super) fn check(problems: &mut PodProblems, at: &StackPath<'_>, job: &Value) {
    for member in [
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "completions",
        "maxFailedIndexes",
        "parallelism",
        "ttlSecondsAfterFinished",
    ] {
        problems.range(at, job, member, NOT_NEGATIVE);
    }
    problems.word(at, job, "completionMode", &["Indexed", "NonIndexed"]);
    indexes(problems, at, job);
    let replacements: &[&str] = match get(job, "podFailurePolicy") {
        Some(policy) => {
            failure_policy(problems, at, job, policy);
            &["Failed"]
        }
        None => &["Failed", "TerminatingOrFailed"],
    };
    problems.word(at, job, "podReplacementPolicy", replacements);
}

/// Checks the fields that count or select the indexes of a Job.
fn indexes(problems: &mut PodProblems, at: &StackPath<'_>, job: &Value) {
    // JobSet sets `Indexed` if it is absent.
    if text(job, "completionMode") == "NonIndexed" {
        for member in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if get(job, member).is_some() {
                let message = "requires `completionMode: Indexed`; set it, or remove this field";
                problems.add(&at.field(member), message);
            }
        }
        return;
    }
    let completions = get(job, "completions").and_then(Value::as_i64);
    let completions = completions.unwrap_or(i64::MAX);
    if let Some(failed) = get(job, "maxFailedIndexes").and_then(Value::as_i64) {
        let at = at.field("maxFailedIndexes");
        if get(job, "backoffLimitPerIndex").is_none() {
            let message = "requires `backoffLimitPerIndex`; set it, or remove this field";
            problems.add(&at, message);
        }
        at_most(problems, &at, failed, completions);
    }
    let Some(policy) = get(job, "successPolicy") else {
        return;
    };
    let at = at.field("successPolicy");
    let at = at.field("rules");
    let rules = items(policy, "rules");
    if rules.is_empty() {
        problems.add(&at, "is empty; add a rule, or remove `successPolicy`");
    }
    for (position, rule) in rules.iter().enumerate() {
        success_rule(problems, &at.index(position), rule, completions);
    }
}

/// Checks that a number is not above the number of completions.
fn at_most(problems: &mut PodProblems, at: &StackPath<'_>, number: i64, completions: i64) {
    if number > completions {
        let message = format!("is {number}, but the Job has {completions} completions; lower it");
        problems.add(at, message);
    }
}

fn success_rule(problems: &mut PodProblems, at: &StackPath<'_>, rule: &Value, completions: i64) {
    let count = get(rule, "succeededCount").and_then(Value::as_i64);
    let indexes = get(rule, "succeededIndexes").and_then(Value::as_str);
    if count.is_none() && indexes.is_none() {
        let message = "has no condition; set `succeededIndexes` or `succeededCount`";
        problems.add(at, message);
    }
    problems.range(at, rule, "succeededCount", NOT_NEGATIVE);
    if let Some(count) = count {
        at_most(problems, &at.field("succeededCount"), count, completions);
    }
    let indexes = indexes.filter(|indexes| !indexes.is_empty());
    if let Some(indexes) = indexes.filter(|indexes| !are_indexes(indexes, completions)) {
        let form = "increasing indexes below the number of completions, such as `0,2-4`";
        problems.add(
            &at.field("succeededIndexes"),
            format!("`{indexes}` is not a list of {form}; correct it"),
        );
    }
}

/// Whether the text is a list of indexes and of ranges of them, in increasing order and below a number.
fn are_indexes(text: &str, below: i64) -> bool {
    let mut last = -1;
    text.split(',').all(|range| {
        let (first, end) = match range.split_once('-') {
            Some((first, end)) => (first.parse(), Some(end.parse())),
            None => (range.parse(), None),
        };
        let (Ok(first), Ok(end)) = (first, end.transpose()) else {
            return false;
        };
        let is_increasing = last < first && end.is_none_or(|end| first < end);
        last = end.unwrap_or(first);
        is_increasing && last < below
    })
}

fn failure_policy(problems: &mut PodProblems, at: &StackPath<'_>, job: &Value, policy: &Value) {
    let none = Value::Null;
    let pod = get_at(job, &["template", "spec"]).unwrap_or(&none);
    // Another value is refused in all pods.
    if matches!(text(pod, "restartPolicy"), "" | "OnFailure") {
        let at = at.field("template");
        let at = at.field("spec");
        problems.add(
            &at.field("restartPolicy"),
            "must be `Never` if the Job has a `podFailurePolicy` (JobSet sets `OnFailure` if it is absent); set it, or remove `podFailurePolicy`",
        );
    }
    let at = at.field("podFailurePolicy");
    let at = at.field("rules");
    let fails_indexes = get(job, "backoffLimitPerIndex").is_some();
    for (position, rule) in items(policy, "rules").iter().enumerate() {
        failure_rule(problems, &at.index(position), rule, pod, fails_indexes);
    }
}

fn failure_rule(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    rule: &Value,
    pod: &Value,
    fails_indexes: bool,
) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    problems.word(at, rule, "action", &actions);
    if text(rule, "action") == "FailIndex" && !fails_indexes {
        problems.add(
            &at.field("action"),
            "is `FailIndex`, which requires `backoffLimitPerIndex` of the Job; set it, or use another action",
        );
    }
    let conditions = items(rule, "onPodConditions");
    let codes = get(rule, "onExitCodes");
    if codes.is_some() != conditions.is_empty() {
        let message = "must have either `onExitCodes` or `onPodConditions`; add or remove one";
        problems.add(at, message);
    }
    let statuses = ["True", "False", "Unknown"];
    let list = at.field("onPodConditions");
    for (position, condition) in conditions.iter().enumerate() {
        problems.word(&list.index(position), condition, "status", &statuses);
    }
    if let Some(codes) = codes {
        exit_codes(problems, &at.field("onExitCodes"), codes, pod);
    }
}

fn exit_codes(problems: &mut PodProblems, at: &StackPath<'_>, codes: &Value, pod: &Value) {
    problems.word(at, codes, "operator", &["In", "NotIn"]);
    if let Some(name) = get(codes, "containerName").and_then(Value::as_str) {
        let mut all = items(pod, "containers")
            .iter()
            .chain(items(pod, "initContainers"));
        if !all.any(|container| text(container, "name") == name) {
            problems.add(
                &at.field("containerName"),
                format!("the pod has no container `{name}`; correct it, or remove this field"),
            );
        }
    }
    let values = items(codes, "values");
    let at = at.field("values");
    if values.is_empty() {
        problems.add(&at, "is empty; add an exit code");
    }
    let numbers = || values.iter().filter_map(Value::as_i64);
    if numbers()
        .zip(numbers().skip(1))
        .any(|(one, next)| one >= next)
    {
        problems.add(
            &at,
            "must be sorted and without duplicates; sort the exit codes",
        );
    }
    if text(codes, "operator") == "In" && numbers().any(|code| code == 0) {
        problems.add(
            &at,
            "has 0, but a pod with this exit code has not failed; remove 0",
        );
    }
}

//! The Jobs of a JobSet, without their pods.

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::{
    FieldProblems, names,
    rules::{ANY, NOT_NEGATIVE, Rule, Shape},
    template,
};
use crate::json::{get, get_at, items, object, text};

/// The spec of a Job.
pub(super) static JOB: Shape = Shape {
    members: &[
        ("activeDeadlineSeconds", &[NOT_NEGATIVE]),
        ("backoffLimit", &[NOT_NEGATIVE]),
        ("backoffLimitPerIndex", &[NOT_NEGATIVE]),
        ("completionMode", &[Rule::Word(&["Indexed", "NonIndexed"])]),
        ("completions", &[NOT_NEGATIVE]),
        ("managedBy", &[Rule::NonEmptyText(names::controller)]),
        ("maxFailedIndexes", &[Rule::Range(0, INDEXED_PODS)]),
        ("parallelism", &[NOT_NEGATIVE]),
        ("podFailurePolicy", &[Rule::Object(&FAILURE_POLICY)]),
        (
            "podReplacementPolicy",
            &[
                Rule::Word(&["Failed", "TerminatingOrFailed"]),
                Rule::Check(replacement),
            ],
        ),
        ("successPolicy", &[Rule::Object(&SUCCESS_POLICY)]),
        ("template", &[Rule::Object(&template::TEMPLATE)]),
        ("ttlSecondsAfterFinished", &[NOT_NEGATIVE]),
    ],
    whole: Some(|problems, at, job| {
        indexes(problems, at, job);
        selector(problems, at, job);
        if let Some(policy) = get(job, "podFailurePolicy") {
            failure_policy(problems, at, job, policy);
        }
    }),
    ..ANY
};

static SUCCESS_POLICY: Shape = Shape {
    members: &[("rules", &[Rule::Items(&SUCCESS_RULE), Rule::Most(RULES)])],
    ..ANY
};

static SUCCESS_RULE: Shape = Shape {
    members: &[("succeededCount", &[NOT_NEGATIVE])],
    ..ANY
};

static FAILURE_POLICY: Shape = Shape {
    members: &[("rules", &[Rule::Items(&FAILURE_RULE), Rule::Most(RULES)])],
    ..ANY
};

static FAILURE_RULE: Shape = Shape {
    members: &[
        (
            "action",
            &[Rule::Word(&["Count", "FailIndex", "FailJob", "Ignore"])],
        ),
        ("onExitCodes", &[Rule::Object(&EXIT_CODES)]),
        (
            "onPodConditions",
            &[Rule::Items(&CONDITION), Rule::Most(RULES)],
        ),
    ],
    whole: Some(|problems, at, rule| {
        let has_conditions = !items(rule, "onPodConditions").is_empty();
        if get(rule, "onExitCodes").is_some() == has_conditions {
            let message = "must have either `onExitCodes` or `onPodConditions`; add or remove one";
            problems.add(at, message);
        }
    }),
    ..ANY
};

static CONDITION: Shape = Shape {
    members: &[
        ("status", &[Rule::Word(&["True", "False", "Unknown"])]),
        ("type", &[Rule::Text(names::key)]),
    ],
    ..ANY
};

static EXIT_CODES: Shape = Shape {
    members: &[
        ("operator", &[Rule::Word(&["In", "NotIn"])]),
        ("values", &[Rule::Most(EXIT_CODES_OF_RULE)]),
    ],
    whole: Some(exit_codes),
    ..ANY
};

/// The most pods of a Job whose pods have an index.
const INDEXED_PODS: i64 = 100_000;

/// The most pods at once, and the most failed indexes, of a Job with more completions than [`INDEXED_PODS`] and a limit for each of them.
const MANY_COMPLETIONS_AT_ONCE: i64 = 10_000;

/// The most rules of a Job's failure policy or success policy, and the most conditions of a rule.
const RULES: usize = 20;

/// The most exit codes of a rule.
const EXIT_CODES_OF_RULE: usize = 255;

/// The labels by which Kubernetes selects the pods of a Job.
const SELECTED: [&str; 4] = [
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
];

fn replacement(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    policy: &Value,
    job: &Map<String, Value>,
) {
    if policy == "TerminatingOrFailed" && job.get("podFailurePolicy").is_some_and(Value::is_object)
    {
        problems.add(at, "is `TerminatingOrFailed`, but must be `Failed`");
    }
}

/// Checks who selects the Job's pods.
fn selector(problems: &mut FieldProblems, at: &StackPath<'_>, job: &Value) {
    let selector = get(job, "selector").filter(|selector| !selector.is_null());
    let is_manual = get(job, "manualSelector") == Some(&Value::Bool(true));
    let at = at.field("selector");
    let Some(selector) = selector else {
        if is_manual {
            let message = "must be set if the Job has `manualSelector: true`; set it, or remove `manualSelector`";
            problems.add(&at, message);
        }
        return;
    };
    let labels = object(selector, "matchLabels").into_iter().flatten();
    let mut others = labels.filter(|(label, _)| !SELECTED.contains(&label.as_str()));
    if !is_manual && others.next().is_some() {
        let message = "has labels, but Kubernetes generates the selector; remove it, or set `manualSelector: true`";
        problems.add(&at, message);
    }
}

/// Checks the fields that count or select the indexes of a Job.
fn indexes(problems: &mut FieldProblems, at: &StackPath<'_>, job: &Value) {
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
    let number = |member: &str| get(job, member).and_then(Value::as_i64);
    if let Some(pods) = number("parallelism").filter(|pods| *pods > INDEXED_PODS) {
        let message = format!(
            "is {pods}, but must be at most {INDEXED_PODS} for pods with an index; lower it"
        );
        problems.add(&at.field("parallelism"), message);
    }
    let completions = number("completions").unwrap_or(i64::MAX);
    many_completions(problems, at, job);
    if let Some(failed) = number("maxFailedIndexes") {
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

/// Checks the numbers of a Job with very many completions and a limit of failures for each of them.
fn many_completions(problems: &mut FieldProblems, at: &StackPath<'_>, job: &Value) {
    let number = |member: &str| get(job, member).and_then(Value::as_i64);
    let completions = number("completions").filter(|completions| *completions > INDEXED_PODS);
    let Some(completions) = completions.filter(|_| get(job, "backoffLimitPerIndex").is_some())
    else {
        return;
    };
    let limits = format!("the Job has {completions} completions and `backoffLimitPerIndex`");
    if number("maxFailedIndexes").is_none() {
        let message = format!("is required because {limits}; set it, or lower the completions");
        problems.add(&at.field("maxFailedIndexes"), message);
    }
    for member in ["maxFailedIndexes", "parallelism"] {
        if let Some(value) = number(member).filter(|value| *value > MANY_COMPLETIONS_AT_ONCE) {
            let message = format!(
                "is {value}, but must be at most {MANY_COMPLETIONS_AT_ONCE} because {limits}; lower it"
            );
            problems.add(&at.field(member), message);
        }
    }
}

/// Checks that a number is not above the number of completions.
fn at_most(problems: &mut FieldProblems, at: &StackPath<'_>, number: i64, completions: i64) {
    if number > completions {
        let message = format!("is {number}, but the Job has {completions} completions; lower it");
        problems.add(at, message);
    }
}

fn success_rule(problems: &mut FieldProblems, at: &StackPath<'_>, rule: &Value, completions: i64) {
    let count = get(rule, "succeededCount").and_then(Value::as_i64);
    let indexes = get(rule, "succeededIndexes").and_then(Value::as_str);
    if count.is_none() && indexes.is_none() {
        let message = "has no condition; set `succeededIndexes` or `succeededCount`";
        problems.add(at, message);
    }
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

fn failure_policy(problems: &mut FieldProblems, at: &StackPath<'_>, job: &Value, policy: &Value) {
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
    let fails_indexes = get(job, "backoffLimitPerIndex").is_some();
    let at = at.fields(&["podFailurePolicy", "rules"]);
    for (position, rule) in items(policy, "rules").iter().enumerate() {
        let at = at.index(position);
        if text(rule, "action") == "FailIndex" && !fails_indexes {
            problems.add(
                &at.field("action"),
                "is `FailIndex`, which requires `backoffLimitPerIndex` of the Job; set it, or use another action",
            );
        }
        let name = get_at(rule, &["onExitCodes", "containerName"]);
        if let Some(name) = name.and_then(Value::as_str) {
            let mut all = items(pod, "containers")
                .iter()
                .chain(items(pod, "initContainers"));
            if !all.any(|container| text(container, "name") == name) {
                problems.add(
                    &at.fields(&["onExitCodes", "containerName"]),
                    format!("the pod has no container `{name}`; correct it, or remove this field"),
                );
            }
        }
    }
}

fn exit_codes(problems: &mut FieldProblems, at: &StackPath<'_>, codes: &Value) {
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

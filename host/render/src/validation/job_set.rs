//! The JobSet itself, as JobSet's admission webhook checks it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::names::{DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_value};

use super::{
    FieldProblems, job, names,
    rules::{self, ANY, INT_MAX, Rule, Shape},
    template::METADATA,
};
use crate::json::{get, get_at, items, text};

/// A JobSet.
pub(super) static JOB_SET: Shape = Shape {
    members: &[
        ("metadata", &[Rule::Object(&METADATA)]),
        ("spec", &[Rule::Object(&SPEC)]),
    ],
    whole: Some(|problems, at, job_set| {
        let name = get_at(job_set, &["metadata", "name"]);
        let name = name.and_then(Value::as_str).unwrap_or_default();
        if let Some(spec) = get(job_set, "spec") {
            let at = at.field("spec");
            claims(problems, &at, name, spec);
            coordinator(problems, &at, name, spec);
        }
    }),
    ..ANY
};

static SPEC: Shape = Shape {
    members: &[
        ("failurePolicy", &[Rule::Object(&FAILURE_POLICY)]),
        ("managedBy", &[Rule::NonEmptyText(names::controller)]),
        ("network", &[Rule::Object(&NETWORK)]),
        ("replicatedJobs", &[Rule::Items(&REPLICATED_JOB)]),
    ],
    whole: Some(|problems, at, spec| {
        depends_on(problems, at, spec);
        targets(problems, at, spec);
    }),
    ..ANY
};

static NETWORK: Shape = Shape {
    members: &[("subdomain", &[Rule::Text(service)])],
    ..ANY
};

static REPLICATED_JOB: Shape = Shape {
    members: &[
        ("groupName", &[Rule::Text(service)]),
        ("name", &[Rule::Text(part_of_name)]),
        ("replicas", &[Rule::Check(replicas)]),
        ("template", &[Rule::Check(template)]),
    ],
    ..ANY
};

/// The template of the Jobs. JobSet adds a few labels and annotations.
static TEMPLATE: Shape = Shape {
    members: &[
        ("metadata", &[Rule::Object(&METADATA)]),
        ("spec", &[Rule::Object(&job::JOB)]),
    ],
    ..ANY
};

static FAILURE_POLICY: Shape = Shape {
    members: &[(
        "rules",
        &[
            Rule::Items(&FAILURE_RULE),
            Rule::Unique("name", "another rule has the name", "rename one of them"),
        ],
    )],
    ..ANY
};

static FAILURE_RULE: Shape = Shape {
    members: &[
        ("name", &[Rule::Text(rule_name)]),
        (
            "onJobFailureReasons",
            &[Rule::Each(&Rule::NonEmptyWord(&[
                "BackoffLimitExceeded",
                "DeadlineExceeded",
                "FailedIndexes",
                "MaxFailedIndexesExceeded",
                "PodFailurePolicy",
            ]))],
        ),
    ],
    ..ANY
};

/// The most replicas of a replicated job whose Jobs can be restarted one by one.
const RESTARTED_JOBS: i64 = 1_024;

/// The longest name of a PersistentVolumeClaim that JobSet creates.
const MAX_CLAIM_NAME: usize = 63;

/// Checks the name of a Service, or of a group of replicated jobs.
fn service(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_service =
        |name: &str| is_dns_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    let form = "a label (at most 63 characters `a-z`, `0-9` and `-`, beginning with a letter and not ending with `-`)";
    problems.form(at, name, is_service, form);
}

/// Checks the name of a replicated job, which is between other parts in the names of its Jobs and pods.
fn part_of_name(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_part = |name: &str| {
        name.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let form = "a part of a Job's name (characters `a-z`, `0-9` and `-`)";
    problems.form(at, name, is_part, form);
}

/// Checks the name of a rule of the failure policy.
fn rule_name(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    let is_name = |name: &str| {
        let is_end = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        name.len() <= 128
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| is_end(b) || matches!(b, b',' | b':'))
            && name.bytes().next_back().is_some_and(is_end)
    };
    let form = "the name of a rule (at most 128 letters, digits, `_`, `,` and `:`, beginning with a letter and not ending with `,` or `:`)";
    problems.form(at, name, is_name, form);
}

/// Checks the template of the Jobs. JobSet does not create any from the template of a replicated job without replicas.
fn template(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    template: &Value,
    job: &Map<String, Value>,
) {
    if job.get("replicas").and_then(Value::as_i64) != Some(0) {
        rules::check(problems, at, &TEMPLATE, template);
    }
}

/// Checks the number of pods of a replicated job.
fn replicas(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    replicas: &Value,
    job: &Map<String, Value>,
) {
    let pods = job
        .get("template")
        .and_then(|template| template.pointer("/spec/parallelism"));
    let pods = pods.and_then(Value::as_i64).unwrap_or(1);
    if let Some(replicas) = replicas.as_i64()
        && replicas.saturating_mul(pods) > INT_MAX
    {
        let message = format!(
            "is {replicas}, but with {pods} pods each (`parallelism`) there are more than {INT_MAX}; lower one of them"
        );
        problems.add(at, message);
    }
}

/// Checks that replicated jobs wait for earlier ones.
fn depends_on(problems: &mut FieldProblems, at: &StackPath<'_>, spec: &Value) {
    let mut known = BTreeSet::new();
    let at = at.field("replicatedJobs");
    for (position, job) in items(spec, "replicatedJobs").iter().enumerate() {
        known.insert(text(job, "name"));
        let at = at.index(position);
        let at = at.field("dependsOn");
        if position == 0 && get(job, "dependsOn").is_some_and(|depends| !depends.is_null()) {
            let message = "is set for the first replicated job, which can wait for no other; remove it, or move the replicated job down";
            problems.add(&at, message);
            continue;
        }
        for (index, dependency) in items(job, "dependsOn").iter().enumerate() {
            let name = text(dependency, "name");
            if !known.contains(name) {
                let message = format!(
                    "`{name}` is not the name of an earlier replicated job; correct it, or move the replicated job up"
                );
                problems.add(&at.index(index).field("name"), message);
            }
        }
    }
}

/// Checks that the policies name replicated jobs that exist.
fn targets(problems: &mut FieldProblems, at: &StackPath<'_>, spec: &Value) {
    let jobs = items(spec, "replicatedJobs");
    let known: BTreeSet<&str> = jobs.iter().map(|job| text(job, "name")).collect();
    if let Some(policy) = get(spec, "successPolicy") {
        names_of_jobs(problems, &at.field("successPolicy"), policy, &known);
    }
    let Some(policy) = get(spec, "failurePolicy") else {
        return;
    };
    let many = jobs.iter().find(|job| {
        let replicas = get(job, "replicas").and_then(Value::as_i64);
        replicas.is_some_and(|replicas| replicas > RESTARTED_JOBS)
    });
    let at = at.fields(&["failurePolicy", "rules"]);
    for (position, rule) in items(policy, "rules").iter().enumerate() {
        let at = at.index(position);
        names_of_jobs(problems, &at, rule, &known);
        let action = text(rule, "action");
        if let ("RestartJob" | "RestartJobAndIgnoreMaxRestarts", Some(job)) = (action, many) {
            let name = text(job, "name");
            let message = format!(
                "is `{action}`, but the replicated job `{name}` has more than {RESTARTED_JOBS} replicas; lower them, or use another action"
            );
            problems.add(&at.field("action"), message);
        }
    }
}

/// Checks that replicated jobs have these names.
fn names_of_jobs(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    policy: &Value,
    known: &BTreeSet<&str>,
) {
    let at = at.field("targetReplicatedJobs");
    let names = items(policy, "targetReplicatedJobs").iter();
    for (position, name) in names.enumerate() {
        if let Some(name) = name.as_str().filter(|name| !known.contains(name)) {
            let message = format!("no replicated job has the name `{name}`; correct it");
            problems.add(&at.index(position), message);
        }
    }
}

/// Checks that the coordinator is a pod of the JobSet, and that a label can have its address.
fn coordinator(problems: &mut FieldProblems, at: &StackPath<'_>, job_set: &str, spec: &Value) {
    let Some(coordinator) = get(spec, "coordinator").filter(|value| value.is_object()) else {
        return;
    };
    let at = at.field("coordinator");
    let name = text(coordinator, "replicatedJob");
    let mut jobs = items(spec, "replicatedJobs").iter();
    let Some(job) = jobs.find(|job| text(job, "name") == name) else {
        let message = format!("no replicated job has the name `{name}`; correct it");
        problems.add(&at.field("replicatedJob"), message);
        return;
    };
    let in_job = |member| get_at(job, &["template", "spec", member]);
    let pods = in_job("completions").and_then(Value::as_i64);
    let mode = in_job("completionMode").and_then(Value::as_str);
    if mode == Some("NonIndexed") || pods.is_none() {
        let message = format!(
            "the pods of replicated job `{name}` have no index, because it has no `completions` or is `NonIndexed`; set `completions` and `completionMode: Indexed`, or name another replicated job"
        );
        problems.add(&at.field("replicatedJob"), message);
    }
    let index = |member| {
        get(coordinator, member)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let replicas = get(job, "replicas").and_then(Value::as_i64).unwrap_or(1);
    for (member, what, number) in [
        ("jobIndex", "Jobs", Some(replicas)),
        ("podIndex", "pods", pods),
    ] {
        let found = index(member);
        if found < 0 {
            problems.add(
                &at.field(member),
                format!("is {found}; it must not be negative"),
            );
        } else if let Some(number) = number.filter(|number| found >= *number) {
            let what_to_do = if number > 0 {
                "lower it"
            } else {
                "name another replicated job"
            };
            let message = format!("is {found}, but `{name}` has {number} {what}; {what_to_do}");
            problems.add(&at.field(member), message);
        }
    }
    let subdomain = get_at(spec, &["network", "subdomain"]).and_then(Value::as_str);
    let subdomain = subdomain.filter(|subdomain| !subdomain.is_empty());
    let (of_job, of_pod) = (index("jobIndex"), index("podIndex"));
    let subdomain = subdomain.unwrap_or(job_set);
    let address = format!("{job_set}-{name}-{of_job}-{of_pod}.{subdomain}");
    if !is_label_value(&address) {
        let message = format!(
            "the address `{address}` is not a label's value (at most 63 characters); use a shorter name for the TrainJob, the replicated job or the subdomain, or remove the coordinator"
        );
        problems.add(&at, message);
    }
}

/// Checks the PersistentVolumeClaims that JobSet creates.
fn claims(problems: &mut FieldProblems, at: &StackPath<'_>, job_set: &str, spec: &Value) {
    let policies = items(spec, "volumeClaimPolicies");
    if policies.is_empty() {
        return;
    }
    let (mut known, mounted) = (BTreeSet::new(), mounted(spec));
    let at = at.field("volumeClaimPolicies");
    for (position, policy) in policies.iter().enumerate() {
        let at = at.index(position);
        let at = at.field("templates");
        for (position, template) in items(policy, "templates").iter().enumerate() {
            let name = template.pointer("/metadata/name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            let at = at.index(position);
            let at = at.fields(&["metadata", "name"]);
            if !is_dns_subdomain(name) {
                let message =
                    format!("`{name}` is not the name of an object ({DNS_SUBDOMAIN}); correct it");
                problems.add(&at, message);
            }
            let length = name.len() + "-".len() + job_set.len();
            if length > MAX_CLAIM_NAME {
                let message = format!(
                    "`{name}` makes the claim's name `{name}-{job_set}`, which has {length} characters, but at most {MAX_CLAIM_NAME} are allowed; shorten it"
                );
                problems.add(&at, message);
            }
            if !known.insert(name) {
                let message = format!("another template has the name `{name}`; rename one of them");
                problems.add(&at, message);
            }
            if !mounted.contains(name) {
                let message = format!(
                    "no container mounts the volume `{name}`; mount it, or remove the template"
                );
                problems.add(&at, message);
            }
        }
    }
    volumes(problems, spec);
}

/// Checks that pods have no volume of the name of a claim.
fn volumes(problems: &mut FieldProblems, spec: &Value) {
    let at = StackPath::ROOT.fields(&["spec", "replicatedJobs"]);
    for (position, job) in items(spec, "replicatedJobs").iter().enumerate() {
        let at = at.index(position);
        let at = at.fields(&["template", "spec", "template", "spec", "volumes"]);
        for (position, volume) in pod(job)
            .map(|pod| items(pod, "volumes"))
            .into_iter()
            .flatten()
            .enumerate()
        {
            let name = text(volume, "name");
            if problems.claimed.contains(name) {
                let message = format!(
                    "`{name}` is also the name of a claim of `volumeClaimPolicies`; rename one of them"
                );
                problems.add(&at.index(position).field("name"), message);
            }
        }
    }
}

/// Returns the names of the volumes that containers mount.
fn mounted(spec: &Value) -> BTreeSet<&str> {
    let pods = items(spec, "replicatedJobs").iter().filter_map(pod);
    let containers = pods.flat_map(|pod| {
        let containers = items(pod, "containers").iter();
        containers.chain(items(pod, "initContainers"))
    });
    let mounts = containers.flat_map(|container| items(container, "volumeMounts"));
    mounts.map(|mount| text(mount, "name")).collect()
}

fn pod(job: &Value) -> Option<&Value> {
    get_at(job, &["template", "spec", "template", "spec"])
}

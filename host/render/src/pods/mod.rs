//! Checks of the rendered Jobs and pods by the rules of Kubernetes' API server.
//!
//! An API server checks Jobs and their pods only when JobSet creates the Jobs, and JobSet reports a refusal only in an Event. The rules that
//! users meet most often are checked here instead, on the result of the rendering. A rule of this module refuses nothing that an API
//! server accepts: its inputs and the answers of a real one are in `tests/cluster/pods.yaml`.

mod container;
mod job;
mod names;
mod placement;
mod resources;
mod volumes;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_api::{FieldPath, StackPath};

use crate::json::{get, items, object, text};

/// A field that an API server would refuse.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PodProblem {
    /// The field in the JobSet's spec, with positions.
    pub(crate) path: FieldPath,
    /// The problem, and what to do.
    pub(crate) message: String,
}

/// The problems found so far.
#[derive(Default)]
struct PodProblems(Vec<PodProblem>);

impl PodProblems {
    fn add(&mut self, at: &StackPath<'_>, message: impl Into<String>) {
        self.0.push(PodProblem {
            path: at.path(),
            message: message.into(),
        });
    }

    /// Adds a problem if the text at this path is not of a form.
    fn form(&mut self, at: &StackPath<'_>, text: &str, has_it: fn(&str) -> bool, form: &str) {
        if !has_it(text) {
            self.add(at, format!("`{text}` is not {form}; correct it"));
        }
    }

    /// Adds a problem if the member is a number outside of the range.
    fn range(&mut self, at: &StackPath<'_>, of: &Value, member: &str, range: (i64, i64)) {
        let Some(number) = get(of, member).and_then(Value::as_i64) else {
            return;
        };
        let (least, most) = range;
        if number < least || number > most {
            let wanted = if most == i64::MAX {
                format!("at least {least}")
            } else {
                format!("{least} to {most}")
            };
            self.add(
                &at.field(member),
                format!("is {number}, but must be {wanted}"),
            );
        }
    }

    /// Adds a problem if the member is a word that is not allowed.
    fn word(&mut self, at: &StackPath<'_>, of: &Value, member: &str, allowed: &[&str]) {
        let word = text(of, member);
        if !word.is_empty() && !allowed.contains(&word) {
            self.add(
                &at.field(member),
                format!("is `{word}`, but must be one of {}", allowed.join(", ")),
            );
        }
    }
}

/// A number without an upper limit that must not be negative.
const NOT_NEGATIVE: (i64, i64) = (0, i64::MAX);

/// Checks the Jobs and pods of a JobSet's spec.
pub(crate) fn check(spec: &Value) -> Vec<PodProblem> {
    let mut problems = PodProblems::default();
    let claimed = claimed_volumes(spec);
    let root = StackPath::ROOT.field("replicatedJobs");
    for (position, job) in items(spec, "replicatedJobs").iter().enumerate() {
        let (at, none) = (root.index(position), Value::Null);
        let (at, job) = (at.field("template"), get(job, "template").unwrap_or(&none));
        let (at, job) = (at.field("spec"), get(job, "spec").unwrap_or(&none));
        job::check(&mut problems, &at, job);
        let at = at.field("template");
        if let Some(template) = get(job, "template") {
            pod_template(&mut problems, &at, template, &claimed);
        }
    }
    problems.0
}

/// Returns the names of the volumes that JobSet adds to pods.
fn claimed_volumes(spec: &Value) -> BTreeSet<&str> {
    let policies = items(spec, "volumeClaimPolicies").iter();
    let templates = policies.flat_map(|policy| items(policy, "templates"));
    let names = templates.filter_map(|template| template.pointer("/metadata/name")?.as_str());
    names.collect()
}

fn pod_template(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    template: &Value,
    claimed: &BTreeSet<&str>,
) {
    if let Some(metadata) = get(template, "metadata") {
        let at = at.field("metadata");
        names::labels(problems, &at.field("labels"), object(metadata, "labels"));
        let annotations = at.field("annotations");
        for key in object(metadata, "annotations")
            .into_iter()
            .flat_map(Map::keys)
        {
            // The API server ignores the case of annotations' keys.
            names::key(problems, &annotations.key(key), &key.to_ascii_lowercase());
        }
    }
    let Some(pod) = get(template, "spec") else {
        return;
    };
    let at = at.field("spec");
    let mut volumes = volumes::check(problems, &at, pod);
    volumes.extend(claimed);
    container::check(problems, &at, pod, &volumes);
    placement::check(problems, &at, pod);
    // JobSet sets `OnFailure` if it is absent.
    problems.word(&at, pod, "restartPolicy", &["Never", "OnFailure"]);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    problems.word(&at, pod, "dnsPolicy", &policies);
    let seconds = (1, i64::from(i32::MAX));
    problems.range(&at, pod, "activeDeadlineSeconds", seconds);
    for member in [
        "priorityClassName",
        "runtimeClassName",
        "serviceAccountName",
    ] {
        names::object(problems, &at.field(member), text(pod, member));
    }
    names::label(problems, &at.field("hostname"), text(pod, "hostname"));
}

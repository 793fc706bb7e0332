//! Checks of the rendered JobSet by the rules of JobSet's admission webhook, and of its Jobs and pods by those of Kubernetes' API server.
//!
//! An API server checks Jobs and their pods only when JobSet creates the Jobs, and JobSet reports a refusal only in an Event. The rules that
//! users meet most often are checked here instead, on the result of the rendering. A rule about Jobs and pods refuses nothing that an API
//! server accepts: inputs and the answers of a real one are in `tests/cluster/pods.yaml`. The rules of the webhook ([`job_set`]) are transcribed
//! from JobSet 0.12.

mod container;
mod env;
mod handlers;
mod job;
mod job_set;
mod names;
mod resources;
mod rules;
mod scheduling;
mod security;
mod template;
mod volumes;

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_api::{FieldPath, StackPath};

use self::rules::{Rule, Shape};
use crate::json::items;

/// A field that an API server would refuse.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldProblem {
    /// The field in the JobSet, with positions.
    pub(crate) path: FieldPath,
    /// The problem, and what to do.
    pub(crate) message: String,
}

/// The problems found so far.
struct FieldProblems {
    found: Vec<FieldProblem>,
    /// The names of the volumes that JobSet adds to pods.
    claimed: BTreeSet<String>,
}

impl FieldProblems {
    fn add(&mut self, at: &StackPath<'_>, message: impl Into<String>) {
        self.found.push(FieldProblem {
            path: at.path(),
            message: message.into(),
        });
    }

    /// Adds a problem if the text at this path is not of a form.
    fn form(&mut self, at: &StackPath<'_>, text: &str, has_it: fn(&str) -> bool, form: &str) {
        if text.is_empty() && !has_it(text) {
            self.add(at, format!("is empty; set it to {form}, or remove it"));
        } else if !has_it(text) {
            self.add(at, format!("`{text}` is not {form}; correct it"));
        }
    }
}

/// Checks a JobSet with its Jobs and pods.
pub(crate) fn check(job_set: &Value) -> Vec<FieldProblem> {
    let spec = job_set.get("spec").unwrap_or(&Value::Null);
    found(&job_set::JOB_SET, job_set, claimed_volumes(spec))
}

/// Checks the labels and annotations of an object that a plugin emitted.
pub(crate) fn check_metadata(object: &Value) -> Vec<FieldProblem> {
    static OBJECT: Shape = Shape {
        members: &[("metadata", &[Rule::Object(&template::METADATA)])],
        ..rules::ANY
    };
    found(&OBJECT, object, BTreeSet::new())
}

fn found(shape: &Shape, value: &Value, claimed: BTreeSet<String>) -> Vec<FieldProblem> {
    let mut problems = FieldProblems {
        found: Vec::new(),
        claimed,
    };
    rules::check(&mut problems, &StackPath::ROOT, shape, value);
    problems.found
}

/// Returns the names of the volumes that JobSet adds to pods.
fn claimed_volumes(spec: &Value) -> BTreeSet<String> {
    let policies = items(spec, "volumeClaimPolicies").iter();
    let templates = policies.flat_map(|policy| items(policy, "templates"));
    let names = templates.filter_map(|template| template.pointer("/metadata/name")?.as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    #[test]
    fn values_of_other_types_are_left_to_the_schema() {
        let containers = json!([{"name": "node", "image": "a"}]);
        for other in [
            json!(null),
            json!(1.5),
            json!(true),
            json!([7]),
            json!([[]]),
        ] {
            for shape in [&job::JOB, &template::POD] {
                let names = shape.members.iter().map(|(name, _)| name);
                let names = names.filter(|name| !matches!(**name, "ephemeralContainers"));
                let mut of: Map<String, Value> = names
                    .map(|name| ((*name).to_owned(), other.clone()))
                    .collect();
                let spec = if of.remove("template").is_some() {
                    of.insert("backoffLimitPerIndex".to_owned(), json!(1));
                    of.remove("podFailurePolicy");
                    of.insert(
                        "template".to_owned(),
                        json!({"spec": {"containers": containers}}),
                    );
                    Value::Object(of)
                } else {
                    of.insert("containers".to_owned(), containers.clone());
                    json!({"template": {"spec": of}})
                };
                let job_set = json!({"spec": {"replicatedJobs": [{"template": {"spec": spec}}]}});
                let found = check(&job_set);
                let of_policy =
                    |problem: &FieldProblem| problem.message.starts_with("is empty; add");
                assert!(found.iter().all(of_policy), "{other}: {found:?}");
            }
        }
    }
}

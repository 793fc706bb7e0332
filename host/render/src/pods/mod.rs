//! Checks of the rendered pods by the rules of Kubernetes' API server.
//!
//! An API server checks pod templates only when JobSet creates the Jobs, and JobSet reports a refusal only in an Event. The rules that users
//! meet most often are checked here instead, on the result of the rendering. A rule of this module refuses nothing that an API server
//! accepts: its inputs and the answers of a real one are in `tests/cluster/pods.yaml`.

mod container;
mod names;
mod placement;
mod resources;
mod volumes;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_api::FieldPath;

use crate::trail::Trail;

/// A field that an API server would refuse.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field in the JobSet's spec, with positions.
    pub(crate) path: FieldPath,
    /// The problem, and what to do.
    pub(crate) message: String,
}

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, at: &Trail<'_>, message: impl Into<String>) {
        self.0.push(Fault {
            path: Trail::path(Some(at)),
            message: message.into(),
        });
    }

    /// Adds a fault if the text at this path is not of a form.
    fn form(&mut self, at: &Trail<'_>, text: &str, has_it: fn(&str) -> bool, form: &str) {
        if !has_it(text) {
            self.add(at, format!("`{text}` is not {form}; correct it"));
        }
    }

    /// Adds a fault if the member is a number outside of the range.
    fn range(&mut self, at: &Trail<'_>, of: &Value, member: &str, range: (i64, i64)) {
        let Some(number) = of.get(member).and_then(Value::as_i64) else {
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
                &at.member(member),
                format!("is {number}, but must be {wanted}"),
            );
        }
    }

    /// Adds a fault if the member is a word that is not allowed.
    fn word(&mut self, at: &Trail<'_>, of: &Value, member: &str, allowed: &[&str]) {
        let word = text(of, member);
        if !word.is_empty() && !allowed.contains(&word) {
            self.add(
                &at.member(member),
                format!("is `{word}`, but must be one of {}", allowed.join(", ")),
            );
        }
    }
}

/// A number without an upper limit that must not be negative.
const NOT_NEGATIVE: (i64, i64) = (0, i64::MAX);

/// Checks the Jobs and pods of a JobSet's spec.
pub(crate) fn check(spec: &Value) -> Vec<Fault> {
    let mut faults = Faults::default();
    let claimed = claimed_volumes(spec);
    let root = Trail::root("replicatedJobs");
    for (position, job) in list(spec, "replicatedJobs").iter().enumerate() {
        let (at, none) = (root.item(position), Value::Null);
        let (at, job) = (at.member("template"), job.get("template").unwrap_or(&none));
        let (at, job) = (at.member("spec"), job.get("spec").unwrap_or(&none));
        for member in [
            "activeDeadlineSeconds",
            "backoffLimit",
            "completions",
            "parallelism",
            "ttlSecondsAfterFinished",
        ] {
            faults.range(&at, job, member, NOT_NEGATIVE);
        }
        let at = at.member("template");
        if let Some(template) = job.get("template") {
            pod_template(&mut faults, &at, template, &claimed);
        }
    }
    faults.0
}

/// Returns the names of the volumes that JobSet adds to pods.
fn claimed_volumes(spec: &Value) -> BTreeSet<&str> {
    let policies = list(spec, "volumeClaimPolicies").iter();
    let templates = policies.flat_map(|policy| list(policy, "templates"));
    let names = templates.filter_map(|template| template.pointer("/metadata/name")?.as_str());
    names.collect()
}

fn pod_template(faults: &mut Faults, at: &Trail<'_>, template: &Value, claimed: &BTreeSet<&str>) {
    if let Some(metadata) = template.get("metadata") {
        let at = at.member("metadata");
        names::labels(faults, &at.member("labels"), object(metadata, "labels"));
        let annotations = at.member("annotations");
        for key in object(metadata, "annotations")
            .into_iter()
            .flat_map(Map::keys)
        {
            // The API server ignores the case of annotations' keys.
            names::key(faults, &annotations.key(key), &key.to_ascii_lowercase());
        }
    }
    let Some(pod) = template.get("spec") else {
        return;
    };
    let at = at.member("spec");
    let mut volumes = volumes::check(faults, &at, pod);
    volumes.extend(claimed);
    container::check(faults, &at, pod, &volumes);
    placement::check(faults, &at, pod);
    // JobSet sets `OnFailure` if it is absent.
    faults.word(&at, pod, "restartPolicy", &["Never", "OnFailure"]);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    faults.word(&at, pod, "dnsPolicy", &policies);
    let seconds = (1, i64::from(i32::MAX));
    faults.range(&at, pod, "activeDeadlineSeconds", seconds);
    for member in [
        "priorityClassName",
        "runtimeClassName",
        "serviceAccountName",
    ] {
        names::object(faults, &at.member(member), text(pod, member));
    }
    names::label(faults, &at.member("hostname"), text(pod, "hostname"));
}

/// Returns the text of a member; empty if there is none.
fn text<'v>(of: &'v Value, member: &str) -> &'v str {
    of.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a member; none if it is not a list.
fn list<'v>(of: &'v Value, member: &str) -> &'v [Value] {
    let items = of.get(member).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the members of a member that is an object.
fn object<'v>(of: &'v Value, member: &str) -> Option<&'v Map<String, Value>> {
    of.get(member).and_then(Value::as_object)
}

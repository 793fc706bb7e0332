//! Sets what the plugin sets, as a runtime's author or a TrainJob does.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trainyard_api::{
    Object,
    path::{FieldPath, Segment},
};
use trainyard_model::names::without_digests;
use trainyard_render::{ProvenanceStep, Setter};

use super::{
    Rendered,
    report::{Check, CheckName},
    scenarios::{add, containers, of_named_pods},
};
use crate::{
    output::counted,
    plugin::cases::{Cases, Rendering, Run, Variant},
    report::ErrorList,
};

/// The name and the value of what a user sets.
const OWN: &str = "users-own";

/// A value of a container that the plugin set, and that users may set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnValue {
    kind: Kind,
    /// The name of the env var, the path of the mount, or the port's number.
    key: String,
    pod_set: String,
    list: &'static str,
    container: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Env,
    Mount,
    Port,
}

/// Returns what a plugin set in containers that are not its own.
pub(super) fn of(rendering: &Rendering<'_>, plugin: &str) -> Vec<OwnValue> {
    let mut all = Vec::new();
    for job in &rendering.jobs {
        let is_ours = |step: &ProvenanceStep| matches!(&step.by, Setter::Plugin { name, .. } if name == plugin);
        let rows = job.rendered.provenance().into_iter();
        let written = rows.filter(|row| row.steps.iter().any(is_ours));
        let values = written.filter_map(|row| OwnValue::at(&row.path));
        all.extend(values.filter(|value| value.container_in(job.rendered.patched()).is_some()));
    }
    all.sort();
    all.dedup();
    all
}

impl OwnValue {
    /// Returns the value at a path of the record.
    fn at(path: &str) -> Option<Self> {
        let path: FieldPath = path.parse().ok()?;
        let texts: Vec<_> = path.segments().iter().map(Segment::text).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let ["pod-sets", pod_set, list, container, field, key, ..] = texts.as_slice() else {
            return None;
        };
        let kind = match *field {
            "env" => Kind::Env,
            "mounts" => Kind::Mount,
            "ports" => Kind::Port,
            _ => return None,
        };
        Some(Self {
            kind,
            // The protocol of a port is left out.
            key: match kind {
                Kind::Port => key.split('/').next()?.to_owned(),
                _ => (*key).to_owned(),
            },
            pod_set: (*pod_set).to_owned(),
            list: match *list {
                "init-containers" => "initContainers",
                _ => "containers",
            },
            container: (*container).to_owned(),
        })
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Env => "the env var",
            Kind::Mount => "the mount",
            Kind::Port => "the port",
        }
    }

    /// Sets the value in the runtimes that have the container.
    fn set(&self, objects: &mut [Object]) {
        of_named_pods(objects, |name, pod| {
            if name != self.pod_set {
                return;
            }
            if self.kind == Kind::Mount {
                add(pod, "volumes", json!({"name": OWN, "emptyDir": {}}));
            }
            let of_name = |container: &&mut Map<String, Value>| {
                container
                    .get("name")
                    .is_some_and(|name| *name == self.container)
            };
            if let Some(container) = containers(pod, self.list).find(of_name) {
                self.set_in(container);
            }
        });
    }

    fn set_in(&self, container: &mut Map<String, Value>) {
        let (list, key, own) = self.item();
        if let Some(items) = container.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| item.get(key) != own.get(key));
        }
        add(container, list, Value::Object(own));
    }

    /// Returns the list of a container that the value is in, the key of its items, and the item of the user.
    fn item(&self) -> (&'static str, &'static str, Map<String, Value>) {
        let (list, key, id, own) = match self.kind {
            Kind::Env => ("env", "name", json!(self.key), "value"),
            Kind::Mount => ("volumeMounts", "mountPath", json!(self.key), "name"),
            Kind::Port => {
                let number = self.key.parse::<u32>();
                let number = number.map_or_else(|_| json!(self.key), |number| json!(number));
                ("ports", "containerPort", number, "name")
            }
        };
        let item = [(key.to_owned(), id), (own.to_owned(), json!(OWN))];
        (list, key, item.into_iter().collect())
    }

    /// Returns the container in the spec of a JobSet.
    fn container_in<'v>(&self, spec: &'v Value) -> Option<&'v Value> {
        let job = named(spec.get("replicatedJobs"), &self.pod_set)?;
        let list = format!("/template/spec/template/spec/{}", self.list);
        named(job.pointer(&list), &self.container)
    }

    /// Whether the user's value is in a JobSet.
    fn is_kept(&self, job_set: &Value) -> bool {
        let spec = job_set.get("spec").unwrap_or(&Value::Null);
        let (list, _, own) = self.item();
        let items = self
            .container_in(spec)
            .and_then(|container| container.get(list)?.as_array());
        let is_own = |item: &Value| own.iter().all(|(key, value)| item.get(key) == Some(value));
        items.is_some_and(|items| items.iter().any(is_own))
    }
}

/// Returns the item of this name in a list.
fn named<'v>(list: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    let mut items = list?.as_array()?.iter();
    items.find(|item| item.get("name").is_some_and(|own| own == name))
}

/// Sets each value once, in the first rendering in which the plugin sets it, and checks that it is kept, that the plugin refuses it, or that a
/// warning names it.
pub(super) fn checks(
    cases: &Cases,
    runs: &[Run<'_>],
    first: &[Rendered],
) -> Result<Vec<Check>, ErrorList> {
    // By the kind and the key: other containers get the same code.
    let mut wanted: BTreeMap<(Kind, &str), (&Run<'_>, &Rendered, &OwnValue)> = BTreeMap::new();
    for (run, rendered) in runs.iter().zip(first) {
        for value in &rendered.values {
            wanted
                .entry((value.kind, &value.key))
                .or_insert((run, rendered, value));
        }
    }
    let mut failures: BTreeMap<Kind, Vec<String>> = BTreeMap::new();
    for (run, before, value) in wanted.values() {
        let variant = Variant {
            renderer: None,
            edit: &|objects| value.set(objects),
        };
        let run = Run {
            variant: &variant,
            ..**run
        };
        let problems = cases.render_runs(&[run], |run, rendering| {
            problem(run, &rendering, (&before.warnings, value))
        })?;
        failures
            .entry(value.kind)
            .or_default()
            .extend(problems.into_iter().flatten());
    }
    let kinds = [
        (CheckName::Env, Kind::Env, "env var"),
        (CheckName::Mounts, Kind::Mount, "mount"),
        (CheckName::Ports, Kind::Port, "port"),
    ];
    let checks = kinds.into_iter().map(|(check, kind, noun)| {
        let count = wanted.keys().filter(|(of, _)| *of == kind).count();
        match count {
            0 => Check::unneeded(check, "it sets none"),
            _ => Check::new(
                check,
                counted(count, noun),
                failures.remove(&kind).unwrap_or_default(),
            ),
        }
    });
    Ok(checks.collect())
}

/// Returns what is wrong if the user sets the value. `before` has the warnings without it.
fn problem(
    run: &Run<'_>,
    rendering: &Rendering<'_>,
    (before, value): (&[String], &OwnValue),
) -> Option<String> {
    let (what, key, place) = (value.name(), &value.key, run.name());
    if let Some(ended) = rendering.ended.first() {
        return Some(format!(
            "{place}: the user sets {what} {key}, and the host ends a call: {ended}"
        ));
    }
    let mut new = warnings(rendering).into_iter();
    let is_warned = new.any(|warning| !before.contains(&warning) && has_word(&warning, key));
    let mut jobs = rendering.jobs.iter();
    let is_lost = jobs.any(|job| !value.is_kept(&job.rendered.job_set)) && !is_warned;
    is_lost.then(|| {
        format!("{place}: the user's value of {what} {key} is replaced, and no warning says so")
    })
}

/// Returns the warnings of a rendering without digests.
pub(super) fn warnings(rendering: &Rendering<'_>) -> Vec<String> {
    let warnings = rendering.warnings.iter();
    warnings.map(|warning| without_digests(warning)).collect()
}

/// Whether a text has a word, and not only a longer one that contains it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + word.len()..)
            .and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

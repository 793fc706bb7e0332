//! Sets what the plugin sets, as a runtime's author or a TrainJob does.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::{Object, path::FieldPath, path::Segment};
use trainyard_model::names::without_digests;
use trainyard_render::{ProvenanceStep, Setter};

use super::{
    Rendered,
    kinds::{Kind, Place},
    report::{Check, CheckName},
};
use crate::{
    output::counted,
    plugin::cases::{Cases, Rendering, Run, Variant},
    report::ErrorList,
};

/// A value of a pod or a container that the plugin set, and that users may set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnValue {
    kind: Kind,
    /// The name of the env var, the path of the mount, the port's number, or another key.
    key: String,
    place: Place,
}

/// Returns what a plugin set in pods, and in containers that are not its own.
pub(super) fn of(rendering: &Rendering<'_>, plugin: &str) -> Vec<OwnValue> {
    let mut all = Vec::new();
    for job in &rendering.jobs {
        let is_ours = |step: &ProvenanceStep| matches!(&step.by, Setter::Plugin { name, .. } if name == plugin);
        let rows = job.rendered.provenance().into_iter();
        let written = rows.filter(|row| row.steps.iter().any(is_ours));
        let values = written.filter_map(|row| OwnValue::at(&row.path));
        all.extend(values.filter(|value| value.place.in_spec(job.rendered.patched()).is_some()));
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
        let ["pod-sets", pod_set, below @ ..] = texts.as_slice() else {
            return None;
        };
        let (container, below) = match below {
            ["containers", container, below @ ..] => (Some(("containers", *container)), below),
            ["init-containers", container, below @ ..] => {
                (Some(("initContainers", *container)), below)
            }
            below => (None, below),
        };
        let [field, keys @ ..] = below else {
            return None;
        };
        let kind = Kind::of_field(field, container.is_some())?;
        Some(Self {
            kind,
            key: kind.key(keys)?,
            place: Place::new(pod_set, container),
        })
    }

    /// Sets the value in the runtimes that have the pod set.
    fn set(&self, objects: &mut [Object]) {
        self.kind.set(&self.key, &self.place, objects);
    }

    /// Whether the user's value is in the spec of a JobSet.
    fn is_in(&self, spec: &Value) -> bool {
        let owner = self.place.in_spec(spec);
        owner.is_some_and(|owner| self.kind.is_own(&self.key, owner))
    }
}

/// Sets each value once, in the first rendering in which the plugin sets it, and checks that it is kept, that the plugin refuses it, or that a
/// warning names it.
pub(super) fn checks(
    cases: &Cases,
    runs: &[Run<'_>],
    first: &[Rendered],
) -> Result<Vec<Check>, ErrorList> {
    // By the kind and the key: other pods and containers get the same code.
    let mut wanted: BTreeMap<(Kind, &str), (&Run<'_>, &Rendered, &OwnValue)> = BTreeMap::new();
    for (run, rendered) in runs.iter().zip(first) {
        for value in &rendered.values {
            wanted
                .entry((value.kind, &value.key))
                .or_insert((run, rendered, value));
        }
    }
    let mut failures: BTreeMap<CheckName, Vec<String>> = BTreeMap::new();
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
            .entry(value.kind.check())
            .or_default()
            .extend(problems.into_iter().flatten());
    }
    let checks = CheckName::OWN_VALUES.into_iter().map(|check| {
        let tried = Kind::ALL.into_iter().filter_map(|kind| {
            let count = wanted.keys().filter(|(of, _)| *of == kind).count();
            (kind.check() == check && count > 0).then(|| counted(count, kind.noun()))
        });
        let tried: Vec<_> = tried.collect();
        match tried.is_empty() {
            true => Check::unneeded(check, "it sets none"),
            false => Check::new(
                check,
                tried.join(", "),
                failures.remove(&check).unwrap_or_default(),
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
    let (what, key, place) = (value.kind.noun(), &value.key, run.name());
    if let Some(ended) = rendering.ended.first() {
        return Some(format!(
            "{place}: the user sets the {what} {key}, and the host ends a call: {ended}"
        ));
    }
    let mut new = warnings(rendering).into_iter();
    let is_warned = new.any(|warning| !before.contains(&warning) && has_word(&warning, key));
    // What a TrainJob replaces is no matter of the plugin.
    let is_lost = rendering.jobs.iter().any(|job| {
        let spec = job.rendered.job_set.get("spec").unwrap_or(&Value::Null);
        value.is_in(job.rendered.patched()) && !value.is_in(spec)
    });
    (is_lost && !is_warned).then(|| {
        format!("{place}: the user's value of the {what} {key} is replaced, and no warning says so")
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

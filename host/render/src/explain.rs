//! Who set each field of the JobSet that the runtime did not, from what, and why.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{
    FieldPath,
    merge::{JOB_SET_SPEC, by_positions},
};
use trainyard_model::{
    plugin::PluginId,
    record::{Change, Field, Level, Owner, Place, PlaceScope, Record},
};

use crate::{
    resolve::{PatchChanges, path_of},
    shape::{ListKey, Shape, item_key, shape},
};

/// Who set a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Setter {
    /// The runtime's policy, by the host's rules.
    Runtime {
        /// The runtime's field.
        field: String,
    },
    /// A runtime patch of the TrainJob.
    Patch {
        /// Who patched.
        manager: String,
        /// The TrainJob's field.
        field: String,
    },
    /// An override of the TrainJob.
    TrainJob {
        /// The TrainJob's field.
        field: String,
    },
    /// A plugin.
    Plugin {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// Its digest.
        digest: String,
        /// Why, in its own words.
        reason: Option<String>,
    },
}

/// One write of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Who wrote.
    pub by: Setter,
    /// What stood there before; none where nothing did.
    pub from: Option<Value>,
    /// What was written; none where the field was removed.
    pub to: Option<Value>,
}

/// The origin of one field of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The record's path; the JobSet's by names for what the record does not hold.
    pub path: String,
    /// The path in the JobSet, with positions; none where the field was removed, or is none of the JobSet.
    pub job_set_path: Option<String>,
    /// The writes, first one first.
    pub steps: Vec<Step>,
    /// The path in the JobSet, with names.
    #[serde(skip)]
    named_path: Option<String>,
}

impl Provenance {
    /// Whether a path that a person typed means this field or one around it: the record's, or the JobSet's by positions
    /// or by names (`spec.replicatedJobs[node]...`).
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        let below = |whole: &str| {
            whole
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let paths = [&self.job_set_path, &self.named_path];
        below(&self.path) || paths.into_iter().flatten().any(|path| below(path))
    }
}

/// Who wrote.
#[derive(Clone, Copy)]
pub(crate) enum Writer<'a> {
    /// The host, by the runtime's policy or the TrainJob's overrides.
    Host,
    /// A runtime patch, by its manager.
    Patch(&'a str),
    /// A plugin.
    Plugin(&'a PluginId),
}

/// The changes of one writer.
pub(crate) struct Written<'a> {
    pub(crate) by: Writer<'a>,
    pub(crate) changes: &'a [Change],
}

/// The origins of all fields, in the order of the JobSet where they have a place in it.
pub(crate) fn explain(
    record: &Record,
    job_set: &Value,
    written: &[Written<'_>],
    patches: &[PatchChanges],
) -> Vec<Provenance> {
    let mut by_place: BTreeMap<&Place, Vec<Step>> = BTreeMap::new();
    for Written { by, changes } in written {
        for change in *changes {
            if matches!(change.place.field, Field::Placement) {
                continue;
            }
            let step = Step {
                by: setter(*by, change),
                from: change.old.as_ref().and_then(|old| old.datum.to_json()),
                to: change
                    .new
                    .as_ref()
                    .and_then(trainyard_model::record::Datum::to_json),
            };
            by_place.entry(&change.place).or_default().push(step);
        }
    }
    let mut out: Vec<_> = by_place
        .into_iter()
        .map(|(place, steps)| Provenance {
            path: record.path(place).to_string(),
            job_set_path: job_set_path(record, place, job_set),
            named_path: path_of(record, place).map(|path| format!("spec.{path}")),
            steps,
        })
        .collect();
    out.extend(beyond(patches, job_set));
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// What patches wrote that the record does not hold.
fn beyond(patches: &[PatchChanges], job_set: &Value) -> Vec<Provenance> {
    let mut by_path: BTreeMap<&FieldPath, Vec<Step>> = BTreeMap::new();
    for patch in patches {
        for beyond in &patch.beyond {
            let by = Setter::Patch {
                manager: patch.manager.clone(),
                field: beyond.reason.clone(),
            };
            let (from, to) = (beyond.from.clone(), beyond.to.clone());
            let steps = by_path.entry(&beyond.path).or_default();
            steps.push(Step { by, from, to });
        }
    }
    let spec = job_set.get("spec").unwrap_or(&Value::Null);
    let provenance = |(path, steps): (&FieldPath, Vec<Step>)| {
        let placed = by_positions(spec, &JOB_SET_SPEC, path);
        let is_there = placed.segments().len() == path.segments().len();
        Provenance {
            path: format!("spec.{path}"),
            job_set_path: is_there.then(|| format!("spec.{placed}")),
            named_path: None,
            steps,
        }
    };
    by_path.into_iter().map(provenance).collect()
}

fn setter(by: Writer<'_>, change: &Change) -> Setter {
    let reason = change.reason.as_deref().map(str::to_owned);
    let field = reason.clone().unwrap_or_default();
    match by {
        Writer::Plugin(id) => Setter::Plugin {
            name: id.name.to_string(),
            version: id.version.to_string(),
            digest: id.digest.to_string(),
            reason,
        },
        Writer::Patch(manager) => Setter::Patch {
            manager: manager.to_owned(),
            field,
        },
        Writer::Host if change.owner == Owner::Runtime => Setter::Runtime { field },
        Writer::Host => Setter::TrainJob { field },
    }
}

/// Where a place of the record stands in the JobSet.
fn job_set_path(record: &Record, place: &Place, job_set: &Value) -> Option<String> {
    let (keys, shape) = shape(place.field);
    if place.field.level() == Level::Job {
        return match shape {
            Shape::Map => Some(format!("{}[{}]", keys.join("."), place.key)),
            _ => None,
        };
    }
    let (set, container) = match place.scope {
        PlaceScope::Job => return None,
        PlaceScope::PodSet(at) => (record.pod_set(at)?, None),
        PlaceScope::Container(id) => {
            let container = record.container(id)?;
            (record.pod_set(container.pod_set)?, Some(container))
        }
    };
    let jobs = job_set.pointer("/spec/replicatedJobs")?.as_array()?;
    let at = jobs
        .iter()
        .position(|job| job.get("name").and_then(Value::as_str) == Some(&*set.name))?;
    let job = format!("spec.replicatedJobs[{at}]");
    match place.field {
        Field::Count => return Some(format!("{job}.template.spec.parallelism")),
        Field::Replicas => return Some(format!("{job}.replicas")),
        _ => {}
    }
    let mut json = jobs.get(at)?.pointer("/template/spec/template")?;
    let mut path = format!("{job}.template.spec.template");
    if let Some(container) = container {
        let (list_keys, _) = crate::shape::shape(container.list);
        let (item, item_path) = item(
            json,
            list_keys,
            ListKey::Field("name"),
            &container.name,
            &path,
        )?;
        (json, path) = (item, item_path);
    }
    match shape {
        Shape::One => descend(json, keys).map(|_| format!("{path}.{}", keys.join("."))),
        Shape::Map => descend(json, keys)?
            .get(&*place.key)
            .map(|_| format!("{path}.{}[{}]", keys.join("."), place.key)),
        Shape::List(by) => item(json, keys, by, &place.key, &path).map(|(_, path)| path),
        Shape::Elsewhere => None,
    }
}

fn item<'v>(
    json: &'v Value,
    keys: &[&str],
    by: ListKey,
    key: &str,
    path: &str,
) -> Option<(&'v Value, String)> {
    let items = descend(json, keys)?.as_array()?;
    let at = items
        .iter()
        .enumerate()
        .position(|(at, item)| item_key(by, at, item).as_deref() == Some(key))?;
    Some((items.get(at)?, format!("{path}.{}[{at}]", keys.join("."))))
}

fn descend<'v>(json: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    keys.iter().try_fold(json, |json, key| json.get(key))
}

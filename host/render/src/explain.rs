//! Who set each field of the JobSet that the runtime did not, from what, and why.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use trainyard_model::{
    plugin::PluginId,
    record::{Change, Field, Level, Owner, Place, PlaceScope, Record},
};

use crate::shape::{ListKey, Shape, item_key, shape};

/// Who set a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Setter {
    /// The runtime's policy, by the host's rules.
    Runtime {
        /// The runtime's field.
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
    /// The record's path.
    pub path: String,
    /// The path in the JobSet, with positions; none where the field was removed, or is none of the JobSet.
    pub job_set_path: Option<String>,
    /// The writes, first one first.
    pub steps: Vec<Step>,
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
        below(&self.path) || self.job_set_path.as_deref().is_some_and(below)
    }
}

/// The changes of one writer.
pub(crate) struct Written<'a> {
    pub(crate) plugin: Option<&'a PluginId>,
    pub(crate) changes: &'a [Change],
}

/// The origins of all fields, in the order of the JobSet where they have a place in it.
pub(crate) fn explain(
    record: &Record,
    job_set: &Value,
    written: &[Written<'_>],
) -> Vec<Provenance> {
    let mut by_place: BTreeMap<&Place, Vec<Step>> = BTreeMap::new();
    for Written { plugin, changes } in written {
        for change in *changes {
            if matches!(change.place.field, Field::Placement) {
                continue;
            }
            let step = Step {
                by: setter(*plugin, change),
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
            steps,
        })
        .collect();
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

fn setter(plugin: Option<&PluginId>, change: &Change) -> Setter {
    let reason = change.reason.as_deref().map(str::to_owned);
    match plugin {
        Some(id) => Setter::Plugin {
            name: id.name.to_string(),
            version: id.version.to_string(),
            digest: id.digest.to_string(),
            reason,
        },
        None => {
            let field = reason.unwrap_or_default();
            if change.owner == Owner::Runtime {
                Setter::Runtime { field }
            } else {
                Setter::TrainJob { field }
            }
        }
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

//! Maps places of the record to paths of the JobSet by the table of shapes, for messages and for `explain`.

use serde_json::Value;
use trainyard_api::{FieldPath, path::Segment};
use trainyard_model::record::{EntryRef, EntryScope, Field, Level, ListKey, Record, Shape};

use crate::{
    additions,
    record_path::{POD_TEMPLATE, REPLICATED_JOBS, replicated_jobs},
};

/// Returns the path of a place in the JobSet, with names. `None` if it is not part of the JobSet.
pub(crate) fn path_of(record: &Record, place: &EntryRef) -> Option<FieldPath> {
    let (keys, shape) = (place.field.keys(), place.field.shape());
    let (set, container) = match place.scope {
        EntryScope::Job => (None, None),
        EntryScope::PodSet(at) => (Some(record.pod_set(at)?), None),
        EntryScope::Container(id) => {
            let container = record.container(id)?;
            (Some(record.pod_set(container.pod_set)?), Some(container))
        }
    };
    // One path is built, because each step by a method of `FieldPath` copies all steps before it.
    let field = |name: &str| Segment::Field(name.to_owned());
    let key = |key: &str| Segment::Key(key.to_owned());
    let mut steps = Vec::new();
    if let Some(set) = set {
        steps.extend(REPLICATED_JOBS.map(field));
        steps.push(key(&set.name));
        if shape != Shape::Job {
            steps.extend(POD_TEMPLATE.map(field));
        }
    }
    if let Some(container) = container {
        steps.extend(container.list.keys().iter().map(|name| field(name)));
        steps.push(key(&container.name));
    }
    steps.extend(keys.iter().map(|name| field(name)));
    match shape {
        Shape::One => {}
        Shape::Job if set.is_some() => {}
        Shape::Map | Shape::List(ListKey::Field(_) | ListKey::Port | ListKey::Text) => {
            steps.push(key(&place.key));
        }
        Shape::Members => steps.extend(place.key.split('/').map(field)),
        Shape::List(ListKey::Position) => steps.push(Segment::Index(place.key.parse().ok()?)),
        Shape::Additions | Shape::Job | Shape::Elsewhere => return None,
    }
    Some(steps.into_iter().collect())
}

/// Returns the paths of a place in an assembled JobSet, with names. There may be none or one, or several for a term that is copied to
/// alternatives.
pub(crate) fn paths_in(record: &Record, job_set: &Value, place: &EntryRef) -> Vec<FieldPath> {
    let Shape::Additions = place.field.shape() else {
        return path_of(record, place).into_iter().collect();
    };
    let (EntryScope::PodSet(at), Some(fields)) = (place.scope, record.fields(place.scope)) else {
        return Vec::new();
    };
    let pods = POD_TEMPLATE.join("/");
    let pods = job_set.pointer(&format!("/spec/replicatedJobs/{at}/{pods}"));
    let (Some(pods), Some(set)) = (pods, record.pod_set(at)) else {
        return Vec::new();
    };
    let path = replicated_jobs().key(&*set.name).fields(POD_TEMPLATE);
    let below = additions::places(pods, place.field, fields.all(place.field), &place.key);
    below.iter().map(|below| path.join(below)).collect()
}

/// Whether it is a path of the record to an addition, such as `pod-sets[node].tolerations[ID]`, whose key is not in the JobSet.
pub(crate) fn is_of_additions(path: &FieldPath) -> bool {
    let [sets, _, field, ..] = path.segments() else {
        return false;
    };
    let field = Field::named(Level::PodSet, &field.text());
    sets.text() == "pod-sets" && field.is_some_and(|field| field.shape() == Shape::Additions)
}

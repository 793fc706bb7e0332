//! Maps places of the record to paths of the JobSet by the table of shapes, for messages and for `explain`.

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::record::{EntryRef, EntryScope, Field, Level, ListKey, Record, Shape};

use crate::{
    additions,
    record_path::{POD_TEMPLATE, replicated_jobs},
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
    let job = set.map(|set| replicated_jobs().key(&*set.name));
    let mut path = match (shape, job) {
        (Shape::Job, Some(job)) => return Some(job.fields(keys)),
        (_, Some(job)) => job.fields(POD_TEMPLATE),
        (_, None) => FieldPath::root(),
    };
    if let Some(container) = container {
        path = path.fields(container.list.keys()).key(&*container.name);
    }
    let path = path.fields(keys);
    match shape {
        Shape::One => Some(path),
        Shape::Map | Shape::List(ListKey::Field(_) | ListKey::Port | ListKey::Text) => {
            Some(path.key(&*place.key))
        }
        Shape::Members => Some(path.fields(place.key.split('/'))),
        Shape::List(ListKey::Position) => Some(path.index(place.key.parse().ok()?)),
        Shape::Additions | Shape::Job | Shape::Elsewhere => None,
    }
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

//! Maps places of the record to paths of the JobSet by the table of shapes, for messages, for `explain` and for paths on the command line.

use serde_json::Value;
use trainyard_api::{FieldPath, path::Segment};
use trainyard_model::record::{EntryRef, EntryScope, Field, Level, Record};

use crate::{
    additions,
    shape::{ListKey, Shape, shape},
};

/// The fields from a replicated job to its pod template.
const POD_TEMPLATE: [&str; 3] = ["template", "spec", "template"];

/// Returns the path of a place in the JobSet, with names. `None` if it is not part of the JobSet.
pub(crate) fn path_of(record: &Record, place: &EntryRef) -> Option<FieldPath> {
    let (keys, shape) = shape(place.field);
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
        path = path
            .fields(crate::shape::shape(container.list).0)
            .key(&*container.name);
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

fn replicated_jobs() -> FieldPath {
    FieldPath::of(["spec", "replicatedJobs"])
}

/// Returns the paths of a place in an assembled JobSet, with names. There may be none or one, or several for a term that is copied to
/// alternatives.
pub(crate) fn paths_in(record: &Record, job_set: &Value, place: &EntryRef) -> Vec<FieldPath> {
    let (_, Shape::Additions) = shape(place.field) else {
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
    sets.text() == "pod-sets" && field.is_some_and(|field| shape(field).1 == Shape::Additions)
}

/// Returns the path in the JobSet for a path of the record, such as `pod-sets[node].count`. `None` if it is not a path of the record. A path
/// that the record does not have maps to a path that no JobSet has.
pub(crate) fn job_set_path(path: &FieldPath) -> Option<FieldPath> {
    let (first, rest) = path.segments().split_first()?;
    let first = first.text();
    if let Some(field) = Field::named(Level::Job, &first) {
        let (keys, shape) = shape(field);
        return (shape == Shape::Map).then(|| below(&FieldPath::of(keys), rest));
    }
    if first != "pod-sets" {
        return None;
    }
    let Some((set, rest)) = rest.split_first() else {
        return Some(replicated_jobs());
    };
    let job = below(&replicated_jobs(), std::slice::from_ref(set));
    Some(of_pod_set(&job, rest))
}

fn of_pod_set(job: &FieldPath, path: &[Segment]) -> FieldPath {
    let Some((first, rest)) = path.split_first() else {
        return job.clone();
    };
    let pods = job.fields(POD_TEMPLATE);
    let Some(field) = Field::named(Level::PodSet, &first.text()) else {
        return below(&pods, path);
    };
    match (shape(field), rest) {
        ((keys, Shape::Job), rest) => below(&job.fields(keys), rest),
        ((_, Shape::Elsewhere), _) => below(&pods, path),
        ((keys, Shape::Members), [member, rest @ ..]) => {
            below(&pods.fields(keys).fields(member.text().split('/')), rest)
        }
        ((keys, _), [container, rest @ ..]) if field.holds_containers() => {
            let container = below(&pods.fields(keys), std::slice::from_ref(container));
            of_container(&container, rest)
        }
        ((keys, _), rest) => below(&pods.fields(keys), rest),
    }
}

fn of_container(container: &FieldPath, path: &[Segment]) -> FieldPath {
    let field = path
        .first()
        .and_then(|first| Field::named(Level::Container, &first.text()));
    match (field.map(shape), path) {
        (Some((keys, Shape::Members)), [_, member, rest @ ..]) => below(
            &container.fields(keys).fields(member.text().split('/')),
            rest,
        ),
        (Some((keys, shape)), [_, rest @ ..]) if shape != Shape::Elsewhere => {
            below(&container.fields(keys), rest)
        }
        _ => below(container, path),
    }
}

fn below(path: &FieldPath, rest: &[Segment]) -> FieldPath {
    path.join(&rest.iter().cloned().collect())
}

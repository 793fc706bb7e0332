//! Translates paths of the record to paths of the JobSet by the table of shapes: fields that the host names, and paths on the command line.

use trainyard_api::{FieldPath, path::Segment};
use trainyard_model::record::{Field, Level};

use crate::shape::{Shape, shape};

/// The fields from a replicated job to its pod template.
pub(crate) const POD_TEMPLATE: [&str; 3] = ["template", "spec", "template"];

/// Returns the path of the replicated jobs.
pub(crate) fn replicated_jobs() -> FieldPath {
    FieldPath::of(["spec", "replicatedJobs"])
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

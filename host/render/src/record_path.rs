//! Translates paths of the record to paths of the JobSet by the table of shapes: fields that the host names, and paths on the command line.

use trainyard_api::{FieldPath, path::Segment};
use trainyard_model::record::{Field, Level, Shape};

/// The fields from a replicated job to its pod template.
pub(crate) const POD_TEMPLATE: [&str; 3] = ["template", "spec", "template"];

/// The fields from a JobSet to its replicated jobs.
pub(crate) const REPLICATED_JOBS: [&str; 2] = ["spec", "replicatedJobs"];

/// Returns the path of the replicated jobs.
pub(crate) fn replicated_jobs() -> FieldPath {
    FieldPath::of(REPLICATED_JOBS)
}

/// Returns the path in the JobSet for a path of the record, such as `pod-sets[node].count`. `None` if it is not a path of the record. A path
/// that the record does not have maps to a path that no JobSet has.
pub(crate) fn job_set_path(path: &FieldPath) -> Option<FieldPath> {
    let (first, rest) = path.segments().split_first()?;
    let first = first.text();
    if let Some(field) = Field::named(Level::Job, &first) {
        let keys = field.keys();
        return (field.shape() == Shape::Map).then(|| below(&FieldPath::of(keys), rest));
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
    match (field.shape(), rest) {
        (Shape::Job, rest) => below(&job.fields(field.keys()), rest),
        (Shape::Elsewhere, _) => below(&pods, path),
        (_, [container, rest @ ..]) if field.holds_containers() => {
            let list = pods.fields(field.keys());
            of_container(&below(&list, std::slice::from_ref(container)), rest)
        }
        (_, rest) => of_field(&pods, field, rest),
    }
}

fn of_container(container: &FieldPath, path: &[Segment]) -> FieldPath {
    let field = path
        .first()
        .and_then(|first| Field::named(Level::Container, &first.text()));
    match (field, path) {
        (Some(field), [_, rest @ ..]) if field.shape() != Shape::Elsewhere => {
            of_field(container, field, rest)
        }
        _ => below(container, path),
    }
}

/// Returns the path of a field, or of what is in it, in a pod template or container.
fn of_field(at: &FieldPath, field: Field, rest: &[Segment]) -> FieldPath {
    let at = at.fields(field.keys());
    match (field.shape(), rest) {
        (Shape::Members, [member, rest @ ..]) => below(&at.fields(member.text().split('/')), rest),
        _ => below(&at, rest),
    }
}

fn below(path: &FieldPath, rest: &[Segment]) -> FieldPath {
    path.join(&rest.iter().cloned().collect())
}

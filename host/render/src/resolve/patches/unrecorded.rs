//! The changes by a patch of fields that the record does not have, such as tolerations and security contexts, for `explain`.

use serde_json::Value;
use trainyard_api::{FieldPath, merge::differences, path::Segment};
use trainyard_model::record::{Field, Level};

use crate::{
    journal::{Source, SpecChange},
};

/// Returns the differences between two specs in fields that the record does not have.
pub(super) fn changes(
    before: &Value,
    after: &Value,
    source: &dyn Fn(Option<&FieldPath>) -> Source,
) -> Vec<SpecChange> {
    let found = differences(before, after).into_iter();
    found
        .filter(|difference| !is_recorded(&difference.path))
        .map(|difference| {
            let path = FieldPath::of(["spec"]).join(&difference.path);
            SpecChange {
                source: source(Some(&path)),
                path,
                from: difference.from,
                to: difference.to,
            }
        })
        .collect()
}

/// Whether the record has the field at a path, or a parent of it.
fn is_recorded(path: &FieldPath) -> bool {
    let segments = path.segments();
    let Some(pod) = below(
        segments,
        &["replicatedJobs", "*", "template", "spec", "template"],
    ) else {
        return false;
    };
    let one_of = |level, segments: &[Segment]| {
        let mut fields = Field::in_templates(level);
        fields.any(|field| below(segments, field.keys()).is_some())
    };
    let in_container = [Field::InitContainers, Field::Containers]
        .into_iter()
        .filter_map(|list| below(pod, list.keys())?.get(1..))
        .any(|container| one_of(Level::Container, container));
    in_container || one_of(Level::PodSet, pod)
}

/// Returns the rest of a path after these fields. `*` matches any name.
fn below<'s>(segments: &'s [Segment], fields: &[&str]) -> Option<&'s [Segment]> {
    let fits = |(segment, field): (&Segment, &&str)| match segment {
        Segment::Field(name) => name == field,
        Segment::Key(_) | Segment::Index(_) => *field == "*",
    };
    let (start, rest) = segments.split_at_checked(fields.len())?;
    start.iter().zip(fields).all(fits).then_some(rest)
}

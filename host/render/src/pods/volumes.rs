//! The volumes of a pod.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_api::StackPath;
use trainyard_model::quantity::Quantity;

use super::{PodProblems, names};
use crate::json::{get, get_at, items, text};

/// Checks the volumes, and returns their names.
pub(super) fn check<'v>(
    problems: &mut PodProblems,
    at: &StackPath<'_>,
    pod: &'v Value,
) -> BTreeSet<&'v str> {
    let at = at.field("volumes");
    let mut known = BTreeSet::new();
    for (position, volume) in items(pod, "volumes").iter().enumerate() {
        let at = at.index(position);
        let name = text(volume, "name");
        names::label(problems, &at.field("name"), name);
        if !known.insert(name) {
            problems.add(
                &at.field("name"),
                format!("another volume of the pod is named `{name}` too; rename or remove one"),
            );
        }
        source(problems, &at, volume);
    }
    known
}

/// Checks the source of a volume. One without a source is an empty directory.
fn source(problems: &mut PodProblems, at: &StackPath<'_>, volume: &Value) {
    let members = volume.as_object().into_iter().flatten();
    let sources: Vec<&str> = members
        .filter(|(_, value)| value.is_object())
        .map(|(member, _)| member.as_str())
        .collect();
    if sources.len() > 1 {
        problems.add(
            at,
            format!("has more than one source: {}; keep one", sources.join(", ")),
        );
        return;
    }
    for (source, member) in [
        ("configMap", "name"),
        ("hostPath", "path"),
        ("persistentVolumeClaim", "claimName"),
        ("secret", "secretName"),
    ] {
        if let Some(value) = get(volume, source)
            && text(value, member).is_empty()
        {
            let at = at.field(source);
            problems.add(&at.field(member), "is empty; set it");
        }
    }
    let size = get_at(volume, &["emptyDir", "sizeLimit"]);
    let size = size.and_then(Value::as_str).and_then(Quantity::parse);
    if let Some(size) = size.filter(|size| size.compare(Quantity::ZERO).is_lt()) {
        let at = at.field("emptyDir");
        problems.add(
            &at.field("sizeLimit"),
            format!("is {size}, but must not be negative"),
        );
    }
    if let Some(path) = get(volume, "hostPath") {
        let at = at.field("hostPath");
        if text(path, "path").split('/').any(|part| part == "..") {
            problems.add(&at.field("path"), "has a part `..`; remove it");
        }
    }
}

//! The volumes of a pod.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_model::quantity::Quantity;

use super::{Faults, list, names, text};
use crate::trail::Trail;

/// Checks the volumes, and returns their names.
pub(super) fn check<'v>(faults: &mut Faults, at: &Trail<'_>, pod: &'v Value) -> BTreeSet<&'v str> {
    let at = at.member("volumes");
    let mut known = BTreeSet::new();
    for (position, volume) in list(pod, "volumes").iter().enumerate() {
        let at = at.item(position);
        let name = text(volume, "name");
        names::label(faults, &at.member("name"), name);
        if !known.insert(name) {
            faults.add(
                &at.member("name"),
                format!("another volume of the pod is named `{name}` too; rename or remove one"),
            );
        }
        source(faults, &at, volume);
    }
    known
}

/// Checks the source of a volume. One without a source is an empty directory.
fn source(faults: &mut Faults, at: &Trail<'_>, volume: &Value) {
    let members = volume.as_object().into_iter().flatten();
    let sources: Vec<&str> = members
        .filter(|(_, value)| value.is_object())
        .map(|(member, _)| member.as_str())
        .collect();
    if sources.len() > 1 {
        faults.add(
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
        if let Some(value) = volume.get(source)
            && text(value, member).is_empty()
        {
            let at = at.member(source);
            faults.add(&at.member(member), "is empty; set it");
        }
    }
    let size = volume.pointer("/emptyDir/sizeLimit");
    let size = size.and_then(Value::as_str).and_then(Quantity::parse);
    if let Some(size) = size.filter(|size| size.compare(Quantity::ZERO).is_lt()) {
        let at = at.member("emptyDir");
        faults.add(
            &at.member("sizeLimit"),
            format!("is {size}, but must not be negative"),
        );
    }
    if let Some(path) = volume.get("hostPath") {
        let at = at.member("hostPath");
        if text(path, "path").split('/').any(|part| part == "..") {
            faults.add(&at.member("path"), "has a part `..`; remove it");
        }
    }
}

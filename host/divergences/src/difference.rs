//! The differences between Trainyard and the reference for one input.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub use crate::answer::{Answer, Difference, Refusal, Side};
use crate::{answer::without_indices, maps::has_any_keys, normal::normal};

/// Returns the differences from the reference's answer that is most similar to Trainyard's.
pub fn differences(trainyard: &Answer, reference: &[Answer]) -> Vec<Difference> {
    let each = reference.iter().map(|reference| from(trainyard, reference));
    each.min_by_key(Vec::len).unwrap_or_default()
}

fn from(trainyard: &Answer, reference: &Answer) -> Vec<Difference> {
    let unread = |dropped: &&String| {
        !trainyard
            .refused
            .iter()
            .any(|refusal| names_unknown(refusal, dropped))
    };
    let mut found: Vec<_> = reference
        .dropped
        .iter()
        .filter(unread)
        .cloned()
        .map(Difference::Dropped)
        .collect();
    found.extend(refusals(trainyard, reference));
    if trainyard.refused.is_empty() && reference.refused.is_empty() {
        found.extend(objects(&trainyard.objects, &reference.objects));
        found.extend(unwarned(trainyard, reference));
    }
    found
}

/// Returns the reference's warnings about TrainJobs for which Trainyard has none. Warnings about runtimes are ignored, because the runtime
/// can be much older.
fn unwarned(trainyard: &Answer, reference: &Answer) -> impl Iterator<Item = Difference> {
    let missed = |warning: &&String| {
        let object = warning.split(": ").next().unwrap_or_default();
        let of_it = |ours: &String| ours.contains(&format!(": {object}: "));
        object.starts_with("TrainJob ") && !trainyard.warnings.iter().any(of_it)
    };
    reference
        .warnings
        .iter()
        .filter(missed)
        .cloned()
        .map(Difference::Unwarned)
}

/// Returns whether this refusal is for the unknown field, which a server drops, or refuses if the client requests it.
fn names_unknown(refusal: &Refusal, dropped: &str) -> bool {
    let field = dropped.split_once(": ").map_or(dropped, |(_, field)| field);
    refusal
        .error
        .starts_with(&format!("unknown field \"{field}\""))
}

/// Compares refusals. If both sides refuse the input for one field, they agree. Otherwise, each refusal is a difference.
fn refusals(trainyard: &Answer, reference: &Answer) -> Vec<Difference> {
    let unknown = |refusal: &&Refusal| {
        reference
            .dropped
            .iter()
            .any(|dropped| names_unknown(refusal, dropped))
    };
    let mut ours = trainyard
        .refused
        .iter()
        .filter(|refusal| !unknown(refusal))
        .peekable();
    if ours.peek().is_none() && !trainyard.refused.is_empty() {
        return Vec::new();
    }
    let ours: Vec<_> = ours.collect();
    if ours
        .iter()
        .any(|ours| reference.refused.iter().any(|theirs| meet(ours, theirs)))
    {
        return Vec::new();
    }
    let theirs = reference
        .refused
        .iter()
        .cloned()
        .map(Difference::RefusedByReference);
    ours.into_iter()
        .cloned()
        .map(Difference::RefusedByTrainyard)
        .chain(theirs)
        .collect()
}

/// Returns whether two refusals are for one field, or one is for a field below the other's.
fn meet(ours: &Refusal, theirs: &Refusal) -> bool {
    let (mut a, b) = (ours.field.to_lowercase(), theirs.field.to_lowercase());
    if !b.contains('[') {
        // The reference does not always report the item of a list.
        a = without_indices(&a);
    }
    match theirs.by.as_str() {
        "panic" => false,
        // The refusal names no field.
        "yaml" | "types" | "build" => true,
        // Errors of the runtime, or of a missing one, are reported at `runtimeRef`.
        "webhook" if b == "spec.runtimeref" && is_of_runtime(ours) => true,
        _ if a.is_empty() || b.is_empty() => a == b,
        _ => a.starts_with(&b) || b.starts_with(&a),
    }
}

/// Returns whether the refusal is for the runtime, or for a part that the runtime does not have.
fn is_of_runtime(refusal: &Refusal) -> bool {
    refusal.object.contains("Runtime ") || refusal.error.contains("the runtime")
}

fn objects(trainyard: &[Value], reference: &[Value]) -> Vec<Difference> {
    let mut ours = by_name(trainyard);
    let mut found = Vec::new();
    for (name, theirs) in by_name(reference) {
        let ours = ours.remove(&name);
        fields(&name.0, "", ours.as_ref(), Some(&theirs), &mut found);
    }
    for (name, ours) in ours {
        fields(&name.0, "", Some(&ours), None, &mut found);
    }
    found
}

/// Returns the objects by kind and name. Some kinds have one name in two groups.
fn by_name(objects: &[Value]) -> BTreeMap<(String, String), Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |object: &Value| {
        let metadata = &object["metadata"];
        let name = format!(
            "{} {}/{}",
            text(&object["kind"]),
            text(&metadata["namespace"]),
            text(&metadata["name"])
        );
        ((name, text(&object["apiVersion"])), normal(object))
    };
    objects.iter().map(named).collect()
}

/// Returns the different fields of two values in their normal form.
pub fn between(object: &str, trainyard: &Value, reference: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    fields(object, "", Some(trainyard), Some(reference), &mut found);
    found
}

/// Adds each different field. If one side does not have a keyed list, each item is a difference.
fn fields(
    object: &str,
    path: &str,
    ours: Option<&Value>,
    theirs: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    if ours == theirs {
        return;
    }
    let empty = Map::new();
    let members = match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => Some((ours, theirs)),
        (Some(Value::Object(ours)), None) if is_by_key(ours) => Some((ours, &empty)),
        (None, Some(Value::Object(theirs))) if is_by_key(theirs) => Some((&empty, theirs)),
        _ => None,
    };
    if let Some((ours, theirs)) = members {
        for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            let field = path.rsplit('.').next().unwrap_or_default();
            let below = match key.starts_with('[') || path.is_empty() {
                true => format!("{path}{key}"),
                false if has_any_keys(field) => format!("{path}[{key}]"),
                false => format!("{path}.{key}"),
            };
            fields(object, &below, ours.get(key), theirs.get(key), found);
        }
        return;
    }
    found.push(Difference::Field {
        object: object.to_owned(),
        path: path.to_owned(),
        reference: theirs.cloned(),
        trainyard: ours.cloned(),
    });
}

fn is_by_key(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| key.starts_with('['))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_maps_and_of_items_are_in_brackets() {
        let object = |value: &str| {
            json!({
                "data": {"host.file": value},
                "metadata": {"annotations": {"example.com/a": value}},
                "spec": {"containers": [{"name": "node", "resources": {"requests": {"nvidia.com/gpu": value}}}]},
            })
        };
        let found = between("JobSet a", &normal(&object("1")), &normal(&object("2")));
        let paths: Vec<_> = found
            .iter()
            .filter_map(|difference| match difference {
                Difference::Field { path, .. } => Some(path.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            paths,
            [
                "data[host.file]",
                "metadata.annotations[example.com/a]",
                "spec.containers[node].resources.requests[nvidia.com/gpu]",
            ]
        );
    }
}

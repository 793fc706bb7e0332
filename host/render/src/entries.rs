//! The maximum number of entries of the lists and maps of an object.
//!
//! On every write, an API server records the manager of each entry and inserts it into a sorted list. The cost is quadratic in the entries of
//! one list or map (`PathElementSet.Insert` of kubernetes-sigs/structured-merge-diff): a map of 80,000 labels keeps it busy for minutes, long
//! after the request timed out. A TrainJob could add up to that with patches of a few thousand labels each, and the controller would write
//! the result.

use serde_json::Value;
use trainyard_api::{FieldPath, StackPath};

use crate::problem::Problem;

/// The maximum number of entries of one list or map. The longest lists of the schemas have 256.
pub(crate) const MAX_ENTRIES: usize = 1_024;

/// The maximum number of entries of all lists and maps of an object.
pub(crate) const MAX_IN_ALL: usize = 50_000;

/// Checks an object before it is written. Reports each list and map with too many entries, or else an object with too many in total.
pub(crate) fn check(object: &Value) -> Vec<Problem> {
    let mut too_long = Vec::new();
    let in_all = count(object, &StackPath::ROOT, &mut too_long);
    if too_long.is_empty() && in_all > MAX_IN_ALL {
        too_long.push((FieldPath::root(), in_all, MAX_IN_ALL));
    }
    let problem = |(path, entries, most): (FieldPath, usize, usize)| Problem::Invariant {
        place: place(object, &path),
        message: format!(
            "has {entries} entries, but at most {most} are allowed, because API servers write larger objects slowly; remove what the pods do not need"
        ),
    };
    too_long.into_iter().map(problem).collect()
}

/// Checks a patch at a path of the TrainJob before it is merged. Reports each list and map with too many entries.
pub(crate) fn check_patch(patch: &Value, at: &FieldPath) -> Vec<Problem> {
    let mut too_long = Vec::new();
    count(patch, &StackPath::ROOT, &mut too_long);
    let problem = |(path, entries, most): (FieldPath, usize, usize)| {
        let message = format!("has {entries} entries, but at most {most} are allowed; remove some");
        Problem::job(at.join(&path), message)
    };
    too_long.into_iter().map(problem).collect()
}

/// Returns the total number of entries of the lists and maps of a value.
pub(crate) fn in_all(value: &Value) -> usize {
    count(value, &StackPath::ROOT, &mut Vec::new())
}

/// Returns the kind and name of the object, and the path in it.
fn place(object: &Value, path: &FieldPath) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").unwrap_or_default();
    if path.is_root() {
        format!("{kind} `{name}`")
    } else {
        format!("{kind} `{name}`: {path}")
    }
}

/// Counts the entries of a value. A list of plain values, such as arguments, counts as one, because it has one manager.
fn count(
    value: &Value,
    at: &StackPath<'_>,
    too_long: &mut Vec<(FieldPath, usize, usize)>,
) -> usize {
    let (entries, in_all) = match value {
        Value::Object(members) => {
            let below = members
                .iter()
                .map(|(name, value)| count(value, &at.field(name), too_long).saturating_add(1));
            (members.len(), below.sum())
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let below = items
                .iter()
                .enumerate()
                .map(|(index, item)| count(item, &at.index(index), too_long).saturating_add(1));
            (items.len(), below.sum())
        }
        _ => (0, 0),
    };
    if entries > MAX_ENTRIES {
        too_long.push((at.path(), entries, MAX_ENTRIES));
    }
    in_all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Map, json};

    use super::*;

    fn labels(count: usize) -> Value {
        let labels: Map<String, Value> = (0..count).map(|at| (at.to_string(), "".into())).collect();
        labels.into()
    }

    #[test]
    fn the_list_or_map_that_is_too_long_is_named() {
        let most =
            json!({"kind": "JobSet", "metadata": {"name": "a", "labels": labels(MAX_ENTRIES)}});
        assert!(check(&most).is_empty());
        let items = vec![json!({"name": "a"}); MAX_ENTRIES + 1];
        let more = json!({"kind": "JobSet", "metadata": {"name": "a"}, "spec": [{"env": items}]});
        let problems = check(&more);
        assert_eq!(problems.len(), 1);
        let text = problems.first().unwrap().to_string();
        assert!(
            text.starts_with("JobSet `a`: spec[0].env: has 1025 entries, "),
            "{text}"
        );
    }

    #[test]
    fn a_patch_is_checked_by_itself() {
        let at: FieldPath = "spec.runtimePatches[0]".parse().unwrap();
        let problems = check_patch(&json!({"a": [{"labels": labels(5_000)}]}), &at);
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.runtimePatches[0].a[0].labels: has 5000 entries, but at most 1024 are allowed; remove some"
            ]
        );
    }

    #[test]
    fn many_lists_and_maps_are_too_many_together() {
        let pods = vec![labels(1_000); MAX_IN_ALL / 1_000 + 1];
        let problems = check(&json!({"kind": "JobSet", "metadata": {"name": "a"}, "spec": pods}));
        let text = problems.first().unwrap().to_string();
        assert!(text.starts_with("JobSet `a`: has 51"), "{text}");
    }

    #[test]
    fn arguments_count_as_one() {
        let args = vec!["x"; MAX_IN_ALL];
        assert!(check(&json!({"kind": "JobSet", "args": args})).is_empty());
    }
}

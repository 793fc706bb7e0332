//! The maximum number of entries of the lists and maps of an object, and its maximum size.
//!
//! On every write, an API server records the manager of each entry and inserts it into a sorted list. The cost is quadratic in the entries of
//! one list or map (`PathElementSet.Insert` of kubernetes-sigs/structured-merge-diff): a map of 80,000 labels keeps it busy for minutes, long
//! after the request timed out. A TrainJob could add up to that with patches of a few thousand labels each, and the controller would write
//! the result.

use serde_json::Value;
use trainyard_api::{
    FieldPath, StackPath,
    size::{STORED_LIMIT, check_size},
};

use crate::problem::Problem;

/// The maximum number of entries of one list or map. The longest lists of the schemas have 256.
pub(crate) const MAX_ENTRIES: usize = 1_024;

/// The maximum number of entries of all lists and maps of an object.
pub(crate) const MAX_IN_ALL: usize = 50_000;

/// Objects whose text is shorter are small enough for etcd, also if JSON escapes all of it.
const SURELY_SMALL: usize = STORED_LIMIT / 8;

/// Checks an object before it is written. Reports each list and map with too many entries, or else an object that is too large as a whole.
pub(crate) fn check(object: &Value) -> Vec<Problem> {
    let mut too_long = Vec::new();
    let Size { entries, text } = count(object, &StackPath::ROOT, &mut too_long);
    if too_long.is_empty() && entries > MAX_IN_ALL {
        too_long.push((FieldPath::root(), entries, MAX_IN_ALL));
    }
    if too_long.is_empty()
        && text > SURELY_SMALL
        && let Err(too_large) = check_size(object)
    {
        return vec![Problem::Invariant {
            place: place(object, &FieldPath::root()),
            message: too_large.to_string(),
        }];
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
    count(value, &StackPath::ROOT, &mut Vec::new()).entries
}

/// Returns the kind and name of the object, and the path in it.
pub(crate) fn place(object: &Value, path: &FieldPath) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").unwrap_or_default();
    if path.is_root() {
        format!("{kind} `{name}`")
    } else {
        format!("{kind} `{name}`: {path}")
    }
}

/// The size of a value.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The entries of its lists and maps. A list of plain values, such as arguments, counts as one, because it has one manager.
    entries: usize,
    /// The bytes of its texts and names, and some for each value.
    text: usize,
}

impl Size {
    /// Adds an entry.
    const fn with(self, Self { entries, text }: Self) -> Self {
        Self {
            entries: self.entries + entries + 1,
            text: self.text + text,
        }
    }
}

/// Counts the entries of a value.
fn count(value: &Value, at: &StackPath<'_>, too_long: &mut Vec<(FieldPath, usize, usize)>) -> Size {
    const OF_VALUE: usize = 16;
    let own = Size {
        entries: 0,
        text: OF_VALUE,
    };
    let (entries, size) = match value {
        Value::Object(members) => {
            let size = members.iter().fold(own, |sum, (name, value)| {
                let below = count(value, &at.field(name), too_long);
                let text = below.text + name.len();
                sum.with(Size { text, ..below })
            });
            (members.len(), size)
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let size = items.iter().enumerate().fold(own, |sum, (index, item)| {
                sum.with(count(item, &at.index(index), too_long))
            });
            (items.len(), size)
        }
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map_or(0, str::len));
            let text = texts.map(|text| text + OF_VALUE).sum();
            (0, Size { entries: 0, text })
        }
        Value::String(text) => {
            let text = text.len() + OF_VALUE;
            (0, Size { entries: 0, text })
        }
        _ => (0, own),
    };
    if entries > MAX_ENTRIES {
        too_long.push((at.path(), entries, MAX_ENTRIES));
    }
    size
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
    fn an_object_that_etcd_does_not_store_is_refused() {
        let of = |bytes: usize| json!({"kind": "JobSet", "metadata": {"name": "a"}, "args": ["x".repeat(bytes)]});
        assert!(check(&of(STORED_LIMIT - 100)).is_empty());
        let problems = check(&of(STORED_LIMIT));
        let text = problems.first().unwrap().to_string();
        assert!(
            text.starts_with("JobSet `a`: the object has 15729")
                && text.contains("etcd stores at most"),
            "{text}"
        );
        // JSON escapes of one byte have six.
        let escaped = json!({"kind": "JobSet", "args": ["\u{1}".repeat(STORED_LIMIT / 6)]});
        assert_eq!(check(&escaped).len(), 1);
    }

    #[test]
    fn arguments_count_as_one() {
        let args = vec!["x"; MAX_IN_ALL];
        assert!(check(&json!({"kind": "JobSet", "args": args})).is_empty());
    }
}

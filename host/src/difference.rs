//! Finds the first difference between two values.

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_divergences::maps::has_any_keys;

/// A field that differs between two values.
#[derive(Debug, PartialEq)]
pub(crate) struct FieldDifference {
    pub(crate) path: FieldPath,
    pub(crate) recorded: Option<Value>,
    pub(crate) now: Option<Value>,
}

/// Returns the first difference between two values, in the order of the recorded one. The order of keys matters, because bytes are compared.
pub(crate) fn first_difference(
    path: &FieldPath,
    recorded: &Value,
    now: &Value,
) -> Option<FieldDifference> {
    let differ = |path: FieldPath, recorded: Option<&Value>, now: Option<&Value>| FieldDifference {
        path,
        recorded: recorded.cloned(),
        now: now.cloned(),
    };
    match (recorded, now) {
        (Value::Object(one), Value::Object(other)) => {
            let field = path.segments().last();
            let is_map = field.is_some_and(|field| has_any_keys(&field.text()));
            let below = |key: &str| match is_map {
                true => path.key(key),
                false => path.field(key),
            };
            for (key, value) in one {
                match other.get(key) {
                    Some(other) => {
                        if let Some(found) = first_difference(&below(key), value, other) {
                            return Some(found);
                        }
                    }
                    None => return Some(differ(below(key), Some(value), None)),
                }
            }
            if let Some((key, value)) = other.iter().find(|(key, _)| !one.contains_key(*key)) {
                return Some(differ(below(key), None, Some(value)));
            }
            let keys =
                |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Value>();
            let is_same_order = one.keys().eq(other.keys());
            (!is_same_order).then(|| differ(path.clone(), Some(&keys(one)), Some(&keys(other))))
        }
        (Value::Array(one), Value::Array(other)) => {
            let below = |at: usize| path.index(at);
            let pairs = one.iter().zip(other).enumerate();
            let mut found = pairs.filter_map(|(at, (a, b))| first_difference(&below(at), a, b));
            found.next().or_else(|| {
                let at = one.len().min(other.len());
                (one.len() != other.len()).then(|| differ(below(at), one.get(at), other.get(at)))
            })
        }
        _ => (recorded != now).then(|| differ(path.clone(), Some(recorded), Some(now))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn first_difference_is_found() {
        let recorded = json!({"spec": {"a": 1, "jobs": [{"n": "x"}, {"n": "y"}], "k/e": true}});
        let table = [
            (
                "/spec/a",
                json!(2),
                "spec.a",
                Some(json!(1)),
                Some(json!(2)),
            ),
            (
                "/spec/jobs/1/n",
                json!(null),
                "spec.jobs[1].n",
                Some(json!("y")),
                Some(json!(null)),
            ),
        ];
        for (pointer, value, path, was, now) in table {
            let mut other = recorded.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            let found = first_difference(&FieldPath::root(), &recorded, &other).unwrap();
            assert_eq!(
                (found.path.to_string().as_str(), found.recorded, found.now),
                (path, was, now)
            );
        }
        let labels = |value: &str| json!({"jobs": [{"labels": {"example.com/a": value}}]});
        let found = first_difference(&FieldPath::root(), &labels("a"), &labels("b")).unwrap();
        assert_eq!(found.path.to_string(), "jobs[0].labels[example.com/a]");
        let longer =
            json!({"spec": {"a": 1, "jobs": [{"n": "x"}, {"n": "y"}, {"n": "z"}], "k/e": true}});
        let found = first_difference(&FieldPath::root(), &recorded, &longer).unwrap();
        assert_eq!(
            (found.path.to_string().as_str(), found.recorded),
            ("spec.jobs[2]", None)
        );
        let ordered = json!({"spec": {"jobs": [{"n": "x"}, {"n": "y"}], "a": 1, "k/e": true}});
        let found = first_difference(&FieldPath::root(), &recorded, &ordered).unwrap();
        assert_eq!(found.recorded, Some(json!(["a", "jobs", "k/e"])));
        assert_eq!(
            first_difference(&FieldPath::root(), &recorded, &recorded),
            None
        );
    }
}

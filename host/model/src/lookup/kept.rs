//! Storage of looked-up objects: the parts that plugins read.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LookupAnswer, LookupKey};
use crate::names::sha256_digest;

/// The JSON pointers that plugins read of the objects of each lookup.
pub type Reads = BTreeMap<LookupKey, BTreeSet<String>>;

/// The most bytes of JSON that are stored for one lookup. A larger part is replaced by its digest, because thousands of TrainJobs may read
/// the same list.
pub(super) const MOST: usize = 16 << 10;

/// The stored part of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "SnapshotForm")]
pub(super) enum StoredAnswer {
    /// The whole answer.
    Whole(LookupAnswer),
    /// The part at these pointers. Nothing else can be read.
    Part {
        /// The part; values that were not read are null or omitted.
        answer: LookupAnswer,
        /// The pointers.
        pointers: BTreeSet<String>,
    },
    /// The digest of the part that was read, which is too large to be stored.
    Digest(String),
}

/// The form in a snapshot. Snapshots of earlier releases have whole answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", untagged)]
enum SnapshotForm {
    Answer(LookupAnswer),
    Stored(Tagged),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Tagged {
    Whole(LookupAnswer),
    Part {
        answer: LookupAnswer,
        pointers: BTreeSet<String>,
    },
    Digest(String),
}

impl From<SnapshotForm> for StoredAnswer {
    fn from(written: SnapshotForm) -> Self {
        match written {
            SnapshotForm::Answer(answer) | SnapshotForm::Stored(Tagged::Whole(answer)) => {
                Self::Whole(answer)
            }
            SnapshotForm::Stored(Tagged::Part { answer, pointers }) => {
                Self::Part { answer, pointers }
            }
            SnapshotForm::Stored(Tagged::Digest(digest)) => Self::Digest(digest),
        }
    }
}

impl StoredAnswer {
    /// The part of an answer at the pointers that were read, or its digest if it has more bytes of JSON than `most`.
    pub(super) fn part(answer: &LookupAnswer, pointers: &BTreeSet<String>, most: usize) -> Self {
        let part = |object: &Value| self::part(object, pointers);
        let answer = match answer {
            LookupAnswer::Object(object) => LookupAnswer::Object(part(object).into()),
            LookupAnswer::All(objects) => {
                LookupAnswer::All(objects.iter().map(|object| part(object).into()).collect())
            }
            LookupAnswer::NotServed | LookupAnswer::Absent | LookupAnswer::Served(_) => {
                return Self::Whole(answer.clone());
            }
        };
        let held = Self::Part {
            answer,
            pointers: pointers.clone(),
        };
        match serde_json::to_vec(&held) {
            Ok(json) if json.len() <= most => held,
            json => Self::Digest(sha256_digest(json.unwrap_or_default())),
        }
    }
}

/// Whether the value at a pointer is available if only these pointers were read.
pub(crate) fn is_known(pointers: &BTreeSet<String>, at: &str) -> bool {
    let ends = at.match_indices('/').map(|(end, _)| end);
    let mut known = ends.chain([at.len()]).filter_map(|end| at.get(..end));
    known.any(|above| pointers.contains(above))
}

/// The part of a value at these pointers.
fn part(value: &Value, pointers: &BTreeSet<String>) -> Value {
    let mut part = Value::Null;
    for pointer in pointers {
        if let Some(found) = value.pointer(pointer) {
            put(&mut part, value, pointer, found);
        }
    }
    if part.is_null() && !value.is_null() {
        part = Value::Object(serde_json::Map::new());
    }
    part
}

/// Copies the value at a pointer to the same pointer of the part.
fn put(part: &mut Value, value: &Value, pointer: &str, found: &Value) {
    let (mut part, mut value) = (part, value);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Object(members) => {
                let Some(next) = members.get(&name) else {
                    return;
                };
                if !part.is_object() {
                    *part = Value::Object(serde_json::Map::new());
                }
                let Some(members) = part.as_object_mut() else {
                    return;
                };
                (part, value) = (members.entry(name).or_insert(Value::Null), next);
            }
            Value::Array(items) => {
                let at: usize = name.parse().unwrap_or(usize::MAX);
                let Some(next) = items.get(at) else {
                    return;
                };
                if !part.is_array() {
                    *part = Value::Array(Vec::new());
                }
                let Some(kept) = part.as_array_mut() else {
                    return;
                };
                if kept.len() <= at {
                    kept.resize(at + 1, Value::Null);
                }
                let Some(kept) = kept.get_mut(at) else {
                    return;
                };
                (part, value) = (kept, next);
            }
            _ => return,
        }
    }
    // A value above it was read, and includes this one.
    if part.is_null() {
        *part = found.clone();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pointers(pointers: &[&str]) -> BTreeSet<String> {
        pointers.iter().map(|&pointer| pointer.to_owned()).collect()
    }

    #[test]
    fn what_was_read_is_kept_and_nothing_else() {
        let node = json!({
            "metadata": {"name": "n", "labels": {"a/b": "c", "large": "value"}},
            "spec": {"taints": [{"key": "a"}, {"key": "b", "effect": "NoSchedule"}]},
            "status": {"images": ["large"]},
        });
        let read = pointers(&[
            "/metadata/labels/a~1b",
            "/spec/taints/1/key",
            "/spec/none",
            "/status/images/7",
        ]);
        let expected = json!({
            "metadata": {"labels": {"a/b": "c"}}, "spec": {"taints": [null, {"key": "b"}]},
        });
        assert_eq!(part(&node, &read), expected);
        assert_eq!(part(&node, &pointers(&[])), json!({}));
        assert_eq!(part(&node, &pointers(&["", "/metadata/name"])), node);
        for known in [
            "/metadata/labels/a~1b",
            "/metadata/labels/a~1b/c",
            "/spec/none/below",
        ] {
            assert!(is_known(&read, known), "{known}");
        }
        for unknown in [
            "",
            "/metadata",
            "/metadata/labels/a~1",
            "/spec/taints",
            "/spec/taints/0/key",
        ] {
            assert!(!is_known(&read, unknown), "{unknown}");
        }
    }

    #[test]
    fn of_more_than_fits_a_digest_is_kept() {
        let list = |text: &str| {
            let object = Arc::new(json!({"a": text, "b": "other"}));
            LookupAnswer::All(vec![object; 100])
        };
        let held = |text: &str, pointer: &str| {
            StoredAnswer::part(&list(text), &pointers(&[pointer]), MOST)
        };
        assert!(matches!(held("x", "/a"), StoredAnswer::Part { .. }));
        let large = "x".repeat(1_000);
        let StoredAnswer::Digest(digest) = held(&large, "/a") else {
            panic!("it does not fit");
        };
        assert!(
            digest.starts_with("sha256:") && digest.len() == 71,
            "{digest}"
        );
        assert_eq!(held(&large, "/a"), StoredAnswer::Digest(digest.clone()));
        assert_ne!(held(&"y".repeat(1_000), "/a"), StoredAnswer::Digest(digest));
    }

    #[test]
    fn what_an_earlier_release_wrote_is_read_as_a_whole() {
        let object = json!({"metadata": {"name": "n"}});
        let answers = [
            LookupAnswer::Object(object.clone().into()),
            LookupAnswer::All(vec![object.into()]),
            LookupAnswer::NotServed,
            LookupAnswer::Served(true),
        ];
        for answer in answers {
            let held = StoredAnswer::Whole(answer.clone());
            let written = [json!(answer), json!(held)];
            assert_ne!(written[0], written[1]);
            for written in written {
                assert_eq!(
                    serde_json::from_value::<StoredAnswer>(written).unwrap(),
                    held
                );
            }
            for held in [
                StoredAnswer::part(&answer, &pointers(&["/metadata"]), MOST),
                StoredAnswer::Digest("sha256:0".to_owned()),
            ] {
                assert_eq!(
                    serde_json::from_value::<StoredAnswer>(json!(held)).unwrap(),
                    held
                );
            }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3i64).prop_map(Value::from),
            "[a~/]".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a~/0]", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn pointer() -> impl Strategy<Value = String> {
        let segment = prop_oneof![Just("a"), Just("~0"), Just("~1"), Just("0"), Just("1")];
        prop::collection::vec(segment, 0..4).prop_map(|segments| {
            segments
                .iter()
                .map(|segment| format!("/{segment}"))
                .collect()
        })
    }

    proptest! {
        /// At every pointer that a part covers, it has the same value as the whole document.
        #[test]
        fn a_part_answers_as_the_whole_does(
            value in value(),
            pointers in prop::collection::btree_set(pointer(), 0..4),
            asked in pointer(),
        ) {
            let part = part(&value, &pointers);
            for at in pointers.iter().chain([&asked]) {
                if is_known(&pointers, at) {
                    prop_assert_eq!(part.pointer(at), value.pointer(at), "{}", at);
                }
            }
        }
    }
}

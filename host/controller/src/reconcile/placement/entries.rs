//! Entries of the fields that place pods, as annotations and snapshots note them.
//!
//! A tenant can write both, with any content that the API server accepts. Parsed entries therefore have a type and bounds. Lists of the
//! spec have no bounds, so each is walked once, and items are looked up by hash.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::{
    PODS,
    field::{self, Field},
    pods_by_name, put,
};

/// The most entries of one field of a replicated job. A JobSet is written with at most 1,024, so this is enough for all removed entries and
/// all that replace them.
const MOST: usize = 2_048;

/// The longest text that is read, in bytes.
const LONGEST: usize = 512 << 10;

/// The most bytes that are noted in an annotation. All annotations of an object together may have 256 KiB.
const IN_ANNOTATION: usize = 128 << 10;

/// The approximate number of bytes of a replicated job and a field without entries.
const PER_FIELD: usize = 40;

/// Why a text is not a list of entries. Holds no part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unusable {
    /// It is too long.
    #[error("has {0} bytes, but at most {LONGEST} are supported")]
    TooLong(usize),
    /// It is not JSON, or names other fields.
    #[error(
        "does not hold the fields that place the pods of each replicated job (line {line}, column {column})"
    )]
    NotFields { line: usize, column: usize },
    /// A field holds an invalid value.
    #[error("{0} of a replicated job has entries of the wrong type")]
    WrongType(&'static str),
    /// A field has too many entries.
    #[error("{field} of a replicated job has {found} entries, but at most {MOST} are supported")]
    TooMany {
        field: &'static str,
        /// How many.
        found: usize,
    },
}

/// Entries of the fields that place pods, by replicated job and field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Entries(BTreeMap<String, BTreeMap<Field, field::Entries>>);

impl Entries {
    /// Parses noted entries.
    ///
    /// # Errors
    /// The text was not written by a controller.
    pub(crate) fn parse(text: &str) -> Result<Self, Unusable> {
        if text.len() > LONGEST {
            return Err(Unusable::TooLong(text.len()));
        }
        let read = serde_json::from_str(text).map_err(|error| Unusable::NotFields {
            line: error.line(),
            column: error.column(),
        });
        let read = Self(read?);
        read.check().map(|()| read)
    }

    fn check(&self) -> Result<(), Unusable> {
        for (field, entries) in self.0.values().flatten() {
            let (field, pointer) = (*field, field.pointer());
            if !entries.are_of(field) {
                return Err(Unusable::WrongType(pointer));
            }
            if entries.len() > MOST {
                return Err(Unusable::TooMany {
                    field: pointer,
                    found: entries.len(),
                });
            }
        }
        Ok(())
    }

    /// Returns the changes from one spec's placement to another's; `None` if they are too large to be noted.
    pub(crate) fn changes(from: &Value, to: &Value) -> Option<Self> {
        let from = pods_by_name(from);
        let changes = Self::collect(to, |name, field, found| {
            let from = from.get(name).copied().flatten();
            let from = from.and_then(|pods| pods.pointer(field.pointer()));
            field::Entries::changes(field, from, found)
        });
        let is_short = || serde_json::to_string(&changes).is_ok_and(|text| text.len() <= LONGEST);
        (changes.check().is_ok() && is_short()).then_some(changes)
    }

    /// Returns the entries that one spec has and another does not, for the replicated jobs of both.
    pub(crate) fn missing(of: &Value, other: &Value) -> Self {
        let all = Self::collect(of, |_, field, found| field::Entries::of(field, found));
        all.missing_in(other)
    }

    /// Returns the entries that a spec does not have.
    pub(crate) fn missing_in(self, spec: &Value) -> Self {
        let pods = pods_by_name(spec);
        let missing = self.0.into_iter().filter_map(|(name, fields)| {
            let pods = pods.get(name.as_str()).copied().flatten()?;
            let fields = fields.into_iter().map(|(field, entries)| {
                let found = pods.pointer(field.pointer());
                (field, entries.not_in(found))
            });
            Some((name, fields.collect()))
        });
        Self::without_empty(missing)
    }

    /// Returns these and the other entries.
    pub(crate) fn and(mut self, others: Self) -> Self {
        for (name, fields) in others.0 {
            let known = self.0.entry(name).or_default();
            for (field, more) in fields {
                match known.get_mut(&field) {
                    Some(entries) => entries.with(more),
                    None => drop(known.insert(field, more)),
                }
            }
        }
        self
    }

    /// Returns as many of them as fit into an annotation.
    pub(crate) fn cut(self) -> Self {
        let mut room = IN_ANNOTATION;
        let cut = self.0.into_iter().map(|(name, mut fields)| {
            for entries in fields.values_mut() {
                room = room.saturating_sub(name.len() + PER_FIELD);
                entries.cut(MOST, &mut room);
            }
            (name, fields)
        });
        Self::without_empty(cut)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an index to look up the entries of Jobs.
    pub(crate) fn index(self) -> Index {
        let fields = |fields: BTreeMap<Field, field::Entries>| {
            let sets = fields.into_iter().map(|(field, entries)| {
                let set = match entries {
                    field::Entries::Map(entries) => {
                        Set::Keys(entries.into_iter().map(|it| it.0).collect())
                    }
                    field::Entries::List(items) => Set::Items(items.into_iter().collect()),
                };
                (field, set)
            });
            sets.collect()
        };
        let all = self.0.into_iter();
        Index(all.map(|(name, of)| (name, fields(of))).collect())
    }

    /// Writes them into a spec.
    pub(crate) fn write(self, spec: &mut Value) {
        let mut all = self.0;
        let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
        for job in jobs.into_iter().flatten() {
            let name = job.get("name").and_then(Value::as_str);
            let Some(fields) = name.and_then(|name| all.remove(name)) else {
                continue;
            };
            let Some(pods) = job.pointer_mut(PODS) else {
                continue;
            };
            for (field, entries) in fields {
                let value = entries.written(field, pods.pointer(field.pointer()));
                put(pods, field, Some(value));
            }
        }
    }

    fn collect(
        spec: &Value,
        entries: impl Fn(&str, Field, Option<&Value>) -> field::Entries,
    ) -> Self {
        let jobs = pods_by_name(spec).into_iter().map(|(name, pods)| {
            let fields = Field::ALL.map(|field| {
                let found = pods.and_then(|pods| pods.pointer(field.pointer()));
                (field, entries(name, field, found))
            });
            (name.to_owned(), fields.into())
        });
        Self::without_empty(jobs)
    }

    fn without_empty(all: impl Iterator<Item = (String, BTreeMap<Field, field::Entries>)>) -> Self {
        let some = all.map(|(name, mut fields)| {
            fields.retain(|_, entries| entries.len() > 0);
            (name, fields)
        });
        Self(some.filter(|(_, fields)| !fields.is_empty()).collect())
    }
}

/// An index of entries that Jobs may have. The cost of a lookup depends on the size of the Job, not on the number of entries.
#[derive(Debug)]
pub(crate) struct Index(HashMap<String, Vec<(Field, Set)>>);

#[derive(Debug)]
enum Set {
    Keys(HashSet<String>),
    Items(HashSet<Value>),
}

impl Index {
    /// Whether the pod template of a Job of that replicated job has one of them.
    pub(crate) fn has_any_of(&self, name: &str, pods: &Value) -> bool {
        let mut fields = self.0.get(name).into_iter().flatten();
        fields.any(|(field, set)| match (pods.pointer(field.pointer()), set) {
            (Some(Value::Object(found)), Set::Keys(keys)) => {
                found.keys().any(|key| keys.contains(key))
            }
            (Some(Value::Array(found)), Set::Items(items)) => {
                found.iter().any(|item| items.contains(item))
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn spec(pods: &Value) -> Value {
        json!({"replicatedJobs": [
            {"name": "other", "template": {"spec": {"template": {"spec": {}}}}},
            {"name": "node", "template": {"spec": {"template": pods}}},
        ]})
    }

    fn base() -> Value {
        spec(&json!({
            "metadata": {"labels": {"stays": "1", "goes": "1", "changes": "1"}},
            "spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a"}]},
        }))
    }

    fn changed() -> Value {
        spec(&json!({
            "metadata": {"labels": {"stays": "1", "changes": "2"}, "annotations": {"new": "1"}},
            "spec": {
                "nodeSelector": {"disk": "ssd", "zone": "a"},
                "tolerations": [{"key": "a"}, {"key": "b"}],
            },
        }))
    }

    #[test]
    fn changes_of_a_placement_apply_to_another() {
        let changes = Entries::changes(&base(), &changed()).unwrap();
        let mut now = base();
        changes.clone().write(&mut now);
        assert_eq!(now, changed());
        let text = serde_json::to_string(&changes).unwrap();
        assert_eq!(Entries::parse(&text).unwrap(), changes);
        // Other fields stay unchanged.
        let mut third = spec(&json!({"spec": {"nodeSelector": {"rack": "7"}}}));
        changes.clone().write(&mut third);
        let pods = third.pointer("/replicatedJobs/1/template/spec/template");
        assert_eq!(
            pods,
            Some(&json!({
                "spec": {"nodeSelector": {"rack": "7", "zone": "a"}, "tolerations": [{"key": "b"}]},
                "metadata": {"labels": {"changes": "2"}, "annotations": {"new": "1"}},
            }))
        );
        assert!(Entries::changes(&base(), &base()).unwrap().is_empty());
    }

    #[test]
    fn what_is_taken_away_is_known_in_a_job() {
        let taken = Entries::missing(&changed(), &base());
        let expected = json!({"node": {
            "/metadata/annotations": {"new": "1"},
            "/spec/nodeSelector": {"zone": "a"},
            "/spec/tolerations": [{"key": "b"}],
        }});
        assert_eq!(serde_json::to_value(&taken).unwrap(), expected);
        let pods = |spec: &Value| {
            spec.pointer("/replicatedJobs/1/template/spec/template")
                .cloned()
        };
        let index = taken.clone().index();
        assert!(index.has_any_of("node", &pods(&changed()).unwrap()));
        assert!(!index.has_any_of("node", &pods(&base()).unwrap()));
        assert!(!index.has_any_of("other", &pods(&changed()).unwrap()));
        // A changed value replaces the earlier one, and an entry that is wanted again is kept.
        assert!(
            Entries::missing(&base(), &changed())
                .index()
                .has_any_of("node", &pods(&base()).unwrap())
        );
        let elsewhere = spec(&json!({"spec": {"nodeSelector": {"zone": "b"}}}));
        let left = taken.clone().missing_in(&elsewhere);
        let expected = json!({"node": {
            "/metadata/annotations": {"new": "1"}, "/spec/tolerations": [{"key": "b"}],
        }});
        assert_eq!(serde_json::to_value(&left).unwrap(), expected);
        let more = Entries::missing(&elsewhere, &base());
        let both = serde_json::to_value(left.and(more)).unwrap();
        assert_eq!(
            both.pointer("/node/~1spec~1nodeSelector/zone"),
            Some(&json!("b"))
        );
        assert_eq!(
            both.pointer("/node/~1spec~1tolerations/0/key"),
            Some(&json!("b"))
        );
    }

    /// As many as an object may hold. Compared each with each, they would be ten billion comparisons.
    fn tolerations(keys: impl Iterator<Item = usize>) -> Vec<Value> {
        keys.map(|key| json!({"key": key.to_string()})).collect()
    }

    const MANY: usize = 100_000;

    fn tolerating(items: &[Value]) -> Value {
        spec(&json!({"spec": {"tolerations": items}}))
    }

    #[test]
    fn what_long_lists_cost_grows_with_their_length_alone() {
        let one = tolerating(&tolerations(0..MANY));
        let other = tolerating(&tolerations((1..=MANY).rev()));
        let missing = Entries::missing(&one, &other);
        let first = json!({"node": {"/spec/tolerations": [{"key": "0"}]}});
        assert_eq!(serde_json::to_value(&missing).unwrap(), first);
        let all = Entries::missing(&one, &spec(&json!({})));
        let both = all.clone().and(Entries::missing(&other, &spec(&json!({}))));
        assert_eq!(
            both.clone().missing_in(&one).missing_in(&other),
            Entries::default()
        );
        let pods = other.pointer("/replicatedJobs/1/template/spec/template");
        assert!(all.clone().index().has_any_of("node", pods.unwrap()));
        let mut written = one.clone();
        both.write(&mut written);
        let items = written.pointer("/replicatedJobs/1/template/spec/template/spec/tolerations");
        assert_eq!(items.unwrap().as_array().unwrap().len(), MANY + 1);
        let added = Entries::changes(&one, &other).unwrap();
        assert_eq!(added, Entries::missing(&other, &one));
    }

    /// Looked for one by one, each of them would pass 20,000 others.
    #[test]
    fn many_replicated_jobs_are_found_by_name() {
        let jobs = |pods: &Value| -> Value {
            let job = |at: usize| json!({"name": at.to_string(), "template": {"spec": {"template": pods}}});
            json!({"replicatedJobs": (0..40_000).map(job).collect::<Vec<_>>()})
        };
        let live = jobs(&json!({"spec": {"nodeSelector": {"zone": "a"}}}));
        let wanted = jobs(&json!({"spec": {}}));
        let taken = Entries::missing(&live, &wanted);
        assert_eq!(taken.0.len(), 40_000);
        assert!(taken.missing_in(&live).is_empty());
        let placed = super::super::placed(&live, &wanted).unwrap();
        assert_eq!(placed, *wanted.get("replicatedJobs").unwrap());
    }

    #[test]
    fn what_no_controller_writes_is_not_read() {
        let noted = |field: &str, entries: Value| {
            let read = Entries::parse(&json!({"node": {field: entries}}).to_string());
            read.map_err(|error| error.to_string())
        };
        let most: serde_json::Map<_, _> = (0..MOST).map(|at| (at.to_string(), "".into())).collect();
        assert!(noted("/metadata/labels", most.clone().into()).is_ok());
        let mut more = most;
        more.insert("more".to_owned(), Value::Null);
        let too_many =
            "/metadata/labels of a replicated job has 2049 entries, but at most 2048 are supported";
        let refused = noted("/metadata/labels", more.into()).unwrap_err();
        assert_eq!(refused, too_many);
        for (field, entries) in [
            ("/spec/tolerations", vec![0; 124_000].into()),
            ("/spec/nodeSelector", json!({"zone": 1})),
            ("/spec/nodeSelector", json!([])),
            ("/spec/schedulingGates", json!({})),
        ] {
            let wrong = format!("{field} of a replicated job has entries of the wrong type");
            assert_eq!(noted(field, entries), Err(wrong));
        }
        for text in [
            "",
            "[]",
            r#"{"node": {"/spec/affinity": {}}}"#,
            r#"{"node": {"/spec/tolerations": 1}}"#,
        ] {
            let refused = Entries::parse(text).unwrap_err().to_string();
            let wanted = "does not hold the fields that place the pods of each replicated job (line 1, column ";
            assert!(refused.starts_with(wanted), "{refused}");
        }
        let long = format!("{{}}{}", " ".repeat(LONGEST));
        assert_eq!(Entries::parse(&long), Err(Unusable::TooLong(LONGEST + 2)));
    }

    #[test]
    fn noted_entries_are_parsed_whatever_their_number() {
        let none = spec(&json!({}));
        let many = tolerating(&tolerations(0..MANY));
        assert_eq!(Entries::changes(&none, &many), None);
        let all = Entries::missing(&many, &none);
        let noted = all.clone().cut();
        let text = serde_json::to_string(&noted).unwrap();
        assert_eq!(Entries::parse(&text), Ok(noted.clone()));
        assert_eq!(noted.clone().cut(), noted);
        let pods = many
            .pointer("/replicatedJobs/1/template/spec/template")
            .unwrap();
        assert!(noted.index().has_any_of("node", pods));
        let long = [
            json!({"key": "x".repeat(IN_ANNOTATION)}),
            json!({"key": "a"}),
        ];
        let cut = Entries::missing(&tolerating(&long), &none).cut();
        let expected = json!({"node": {"/spec/tolerations": [{"key": "a"}]}});
        assert_eq!(serde_json::to_value(&cut).unwrap(), expected);
        // What is small is noted whole.
        let small = Entries::missing(&changed(), &base());
        assert_eq!(small.clone().cut(), small);
    }
}

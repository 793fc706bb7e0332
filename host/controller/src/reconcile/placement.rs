//! How the pods of a JobSet are placed: all that JobSet lets change in a JobSet that has run. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trainyard_api::{TrainJob, merge};

/// The fields of a pod template that may change while a JobSet is suspended. The affinity is not among them.
const FIELDS: [&str; 5] = [
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/nodeSelector",
    "/spec/tolerations",
    "/spec/schedulingGates",
];

/// Where a replicated job has its pod template.
const PODS: &str = "/template/spec/template";

/// What places pods, of a pod template.
pub(crate) fn of(pods: &Value) -> Value {
    let mut of = Value::Object(Map::new());
    for field in FIELDS {
        put(&mut of, field, pods.pointer(field).cloned());
    }
    of
}

/// The live spec's replicated jobs, with their pods placed as in the wanted spec. `None` if they are already.
pub(crate) fn placed(live: &Value, wanted: &Value) -> Option<Value> {
    let mut jobs = live.get("replicatedJobs")?.clone();
    let before = jobs.clone();
    for job in jobs.as_array_mut()? {
        let Some(wanted) = job.get("name").and_then(|name| named(wanted, name)) else {
            continue;
        };
        let (Some(pods), Some(wanted)) = (job.pointer_mut(PODS), wanted.pointer(PODS)) else {
            continue;
        };
        for field in FIELDS {
            put(pods, field, wanted.pointer(field).cloned());
        }
    }
    (jobs != before).then_some(jobs)
}

/// A spec with the TrainJob's own patches, each as far as it can be merged.
pub(crate) fn patched(job: &TrainJob, spec: &Value) -> Value {
    let patches = job
        .runtime_patches
        .iter()
        .filter_map(|patch| patch.spec.as_ref());
    patches.fold(spec.clone(), |spec, patch| {
        merge::strategic(&spec, patch).unwrap_or(spec)
    })
}

/// Entries of the fields that place pods, by replicated job and field: of a map with their values, `null` for one that is removed;
/// of a list the items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Entries(BTreeMap<String, BTreeMap<String, Value>>);

impl Entries {
    /// What makes the placement of one spec out of that of another.
    pub(crate) fn changes(from: &Value, to: &Value) -> Self {
        Self::collect(to, |name, field, found| {
            let from = named(from, &name.into()).and_then(|job| job.pointer(PODS)?.pointer(field));
            changes(from, found)
        })
    }

    /// What a spec has, and another one has not. A replicated job that the other does not have is left out.
    pub(crate) fn missing(of: &Value, other: &Value) -> Self {
        let all = Self::collect(of, |_, _, found| found.cloned());
        all.missing_in(other)
    }

    /// Those that a spec does not have.
    pub(crate) fn missing_in(mut self, spec: &Value) -> Self {
        self.0.retain(|name, fields| {
            let Some(pods) = named(spec, &name.as_str().into()).and_then(|job| job.pointer(PODS))
            else {
                return false;
            };
            fields.retain(|field, entries| {
                retain_missing(entries, pods.pointer(field));
                !is_empty(entries)
            });
            !fields.is_empty()
        });
        self
    }

    /// Both together.
    pub(crate) fn and(mut self, others: Self) -> Self {
        for (name, fields) in others.0 {
            let known = self.0.entry(name).or_default();
            for (field, more) in fields {
                let entries = known.remove(&field);
                known.insert(field, with(entries, more));
            }
        }
        self
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the pod template of a Job of that replicated job has one of them.
    pub(crate) fn are_in(&self, name: &str, pods: &Value) -> bool {
        let fields = self.0.get(name).into_iter().flatten();
        fields.into_iter().any(|(field, entries)| {
            let mut missing = entries.clone();
            retain_missing(&mut missing, pods.pointer(field));
            missing != *entries
        })
    }

    /// Writes them into a spec.
    pub(crate) fn write(&self, spec: &mut Value) {
        let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
        for job in jobs.into_iter().flatten() {
            let name = job.get("name").and_then(Value::as_str);
            let Some(fields) = name.and_then(|name| self.0.get(name)) else {
                continue;
            };
            let Some(pods) = job.pointer_mut(PODS) else {
                continue;
            };
            for (field, more) in fields {
                let mut entries = with(pods.pointer(field).cloned(), more.clone());
                if let Some(entries) = entries.as_object_mut() {
                    entries.retain(|_, value| !value.is_null());
                }
                put(pods, field, Some(entries));
            }
        }
    }

    fn collect(
        spec: &Value,
        entries: impl Fn(&str, &str, Option<&Value>) -> Option<Value>,
    ) -> Self {
        let jobs = spec.get("replicatedJobs").and_then(Value::as_array);
        let mut all = BTreeMap::new();
        for job in jobs.into_iter().flatten() {
            let Some(name) = job.get("name").and_then(Value::as_str) else {
                continue;
            };
            let pods = job.pointer(PODS).unwrap_or(&Value::Null);
            let fields = FIELDS.iter().filter_map(|field| {
                let entries = entries(name, field, pods.pointer(field))?;
                (!is_empty(&entries)).then(|| ((*field).to_owned(), entries))
            });
            let fields: BTreeMap<_, _> = fields.collect();
            if !fields.is_empty() {
                all.insert(name.to_owned(), fields);
            }
        }
        Self(all)
    }
}

/// What makes one value of a field out of another.
fn changes(from: Option<&Value>, to: Option<&Value>) -> Option<Value> {
    if let Some(Value::Array(items)) = to {
        let mut items = Value::Array(items.clone());
        retain_missing(&mut items, from);
        return Some(items);
    }
    let (from, to) = (
        from.and_then(Value::as_object),
        to.and_then(Value::as_object),
    );
    let of =
        |map: Option<&Map<String, Value>>, key: &str| map.and_then(|map| map.get(key)).cloned();
    let set = to.into_iter().flatten();
    let set = set.filter(|(key, value)| of(from, key).as_ref() != Some(value));
    let set = set.map(|(key, value)| (key.clone(), value.clone()));
    let removed = from.into_iter().flatten().map(|(key, _)| key);
    let removed = removed.filter(|key| of(to, key).is_none());
    let removed = removed.map(|key| (key.clone(), Value::Null));
    Some(Value::Object(set.chain(removed).collect()))
}

/// Keeps what the value of a field does not have: keys of a map, items of a list.
fn retain_missing(entries: &mut Value, found: Option<&Value>) {
    match entries {
        Value::Object(entries) => {
            let found = found.and_then(Value::as_object);
            entries.retain(|key, _| found.is_none_or(|found| !found.contains_key(key)));
        }
        Value::Array(items) => {
            let found = found.and_then(Value::as_array);
            items.retain(|item| found.is_none_or(|found| !found.contains(item)));
        }
        _ => {}
    }
}

/// The value of a field with more entries.
fn with(entries: Option<Value>, more: Value) -> Value {
    match (entries, more) {
        (Some(Value::Object(mut entries)), Value::Object(more)) => {
            entries.extend(more);
            Value::Object(entries)
        }
        (Some(Value::Array(mut entries)), mut more) => {
            retain_missing(&mut more, Some(&Value::Array(entries.clone())));
            if let Value::Array(more) = more {
                entries.extend(more);
            }
            Value::Array(entries)
        }
        (_, more) => more,
    }
}

fn named<'v>(spec: &'v Value, name: &Value) -> Option<&'v Value> {
    let jobs = spec.get("replicatedJobs")?.as_array()?;
    jobs.iter().find(|job| job.get("name") == Some(name))
}

/// Sets a field two levels down, or takes it away; what is empty counts as absent.
fn put(pods: &mut Value, field: &str, wanted: Option<Value>) {
    let mut names = field.split('/').skip(1);
    let (Some(parent), Some(name), Some(pods)) = (names.next(), names.next(), pods.as_object_mut())
    else {
        return;
    };
    let wanted = wanted.filter(|value| !is_empty(value));
    let parent = match wanted {
        Some(_) => Some(
            pods.entry(parent)
                .or_insert_with(|| Value::Object(Map::new())),
        ),
        None => pods.get_mut(parent),
    };
    let Some(parent) = parent.and_then(Value::as_object_mut) else {
        return;
    };
    match wanted {
        Some(value) => {
            parent.insert(name.to_owned(), value);
        }
        None if parent.get(name).is_some_and(|held| !is_empty(held)) => {
            parent.shift_remove(name);
        }
        None => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
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

    #[test]
    fn placement_changes_and_nothing_else() {
        let live = spec(&json!({
            "metadata": {"labels": {"old": "1"}},
            "spec": {
                "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                "nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "g"}],
            },
        }));
        let wanted = spec(&json!({
            "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [{"name": "node", "image": "b"}],
                "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
            },
        }));
        let jobs = placed(&live, &wanted).unwrap();
        let pods = jobs.pointer("/1/template/spec/template").unwrap();
        assert_eq!(
            *pods,
            json!({
                "metadata": {"labels": {"new": "1"}, "annotations": {"a": "b"}},
                "spec": {
                    "containers": [{"name": "node", "image": "a"}], "restartPolicy": "OnFailure",
                    "nodeSelector": {"zone": "b"}, "tolerations": [{"operator": "Exists"}],
                },
            })
        );
        assert_eq!(jobs.pointer("/0"), live.pointer("/replicatedJobs/0"));
    }

    #[test]
    fn what_is_equal_or_empty_is_no_change() {
        let live = spec(&json!({"metadata": {}, "spec": {"nodeSelector": {"zone": "a"}}}));
        let wanted = spec(&json!({"spec": {"tolerations": [], "nodeSelector": {"zone": "a"}}}));
        assert_eq!(placed(&live, &wanted), None);
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
    fn changes_lead_from_one_placement_to_the_other_and_add_to_a_third() {
        let changes = Entries::changes(&base(), &changed());
        let mut now = base();
        changes.write(&mut now);
        assert_eq!(now, changed());
        let text = serde_json::to_string(&changes).unwrap();
        assert_eq!(serde_json::from_str::<Entries>(&text).unwrap(), changes);
        // What they do not name stays as it is there.
        let mut third = spec(&json!({"spec": {"nodeSelector": {"rack": "7"}}}));
        changes.write(&mut third);
        let pods = third.pointer("/replicatedJobs/1/template/spec/template");
        assert_eq!(
            pods,
            Some(&json!({
                "spec": {"nodeSelector": {"rack": "7", "zone": "a"}, "tolerations": [{"key": "b"}]},
                "metadata": {"labels": {"changes": "2"}, "annotations": {"new": "1"}},
            }))
        );
        assert!(Entries::changes(&base(), &base()).is_empty());
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
        assert!(taken.are_in("node", &pods(&changed()).unwrap()));
        assert!(!taken.are_in("node", &pods(&base()).unwrap()));
        assert!(!taken.are_in("other", &pods(&changed()).unwrap()));
        // A changed value takes the place of the one before it, and what is wanted again is not taken away.
        assert!(Entries::missing(&base(), &changed()).are_in("node", &pods(&base()).unwrap()));
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
}

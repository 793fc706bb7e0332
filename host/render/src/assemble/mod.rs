//! The record, written into the runtime's JobSet template, once.
//!
//! What was there keeps its place. Only what somebody changed is written, so that everything that the runtime's author
//! wrote, and that the record does not model, stays as it is (W28, W29, W63, W68, W72).

mod json;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use trainyard_api::JobSet;
use trainyard_model::{
    object::Object,
    record::{Change, ContainerId, Entry, Field, PlaceScope, Record},
};

use self::json::{edit_at, edit_list, edit_object, insert_after};
pub(crate) use self::order::place_init_containers;
use crate::shape::{ListKey, Shape, item_json, item_key, shape};

/// The keys that were changed, by the list or value that they stand in.
type Touched = BTreeMap<(PlaceScope, Field), BTreeSet<String>>;

/// The order of each pod set's init containers, where one was solved.
pub(crate) type InitOrder = BTreeMap<u32, Vec<ContainerId>>;

/// Writes the record into the template's spec.
pub(crate) fn assemble<'c>(
    template: &Value,
    record: &Record,
    changes: impl Iterator<Item = &'c Change>,
    init_order: &InitOrder,
) -> Value {
    let mut touched = Touched::new();
    for change in changes {
        let key = (change.place.scope, change.place.field);
        touched
            .entry(key)
            .or_default()
            .insert(change.place.key.to_string());
    }
    let writer = Writer {
        record,
        touched: &touched,
    };
    let mut spec = template.clone();
    edit_list(&mut spec, &["replicatedJobs"], |jobs| {
        for job in jobs {
            let name = job.get("name").and_then(Value::as_str);
            if let Some(position) = name.and_then(|name| record.pod_set_named(name)) {
                writer.write_pod_set(job, position, init_order.get(&position));
            }
        }
    });
    spec
}

/// A JobSet of that spec, with the template's metadata and what was changed of it.
pub(crate) fn job_set(record: &Record, namespace: &str, suspended: bool, mut spec: Value) -> Value {
    edit_object(&mut spec, &[], |spec| {
        drop(spec.insert("suspend".to_owned(), suspended.into()))
    });
    let texts = |field| {
        let entries = record.fields.all(field).iter();
        entries
            .filter_map(|e| Some((e.key.to_string(), e.datum.as_text()?.to_owned())))
            .collect()
    };
    JobSet {
        name: record.job_name.to_string(),
        namespace: Some(namespace.to_owned()),
        labels: texts(Field::Labels),
        annotations: texts(Field::Annotations),
        spec,
    }
    .into_value()
}

/// An emitted object as it is applied.
pub(crate) fn object(object: &Object, namespace: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), object.name.as_str().into());
    metadata.insert("namespace".to_owned(), namespace.into());
    for (key, texts) in [
        ("labels", &object.labels),
        ("annotations", &object.annotations),
    ] {
        if !texts.is_empty() {
            metadata.insert(key.to_owned(), json!(texts));
        }
    }
    let mut out = Map::new();
    out.insert("apiVersion".to_owned(), object.api_version.as_str().into());
    out.insert("kind".to_owned(), object.kind.as_str().into());
    out.insert("metadata".to_owned(), Value::Object(metadata));
    if !object.data.is_empty() {
        out.insert("data".to_owned(), json!(object.data));
    }
    if !object.binary_data.is_empty() {
        let encoded = object
            .binary_data
            .iter()
            .map(|(key, bytes)| (key.clone(), BASE64_STANDARD.encode(bytes).into()));
        out.insert("binaryData".to_owned(), Value::Object(encoded.collect()));
    }
    if object.immutable {
        out.insert("immutable".to_owned(), true.into());
    }
    Value::Object(out)
}

/// Writes what was touched of a record into JSON.
struct Writer<'a> {
    record: &'a Record,
    touched: &'a Touched,
}

impl Writer<'_> {
    fn write_pod_set(&self, job: &mut Value, position: u32, init_order: Option<&Vec<ContainerId>>) {
        self.write_counts(job, position);
        edit_at(job, &["template", "spec", "template"], |pod| {
            self.write_pod(pod, position, init_order)
        });
    }

    /// Pods and jobs of a replicated job. What nobody asked to change stays (W69); what is absent is written as the
    /// reference writes it.
    fn write_counts(&self, job: &mut Value, position: u32) {
        let Some(set) = self.record.pod_set(position) else {
            return;
        };
        let asked = |field| {
            self.touched
                .contains_key(&(PlaceScope::PodSet(position), field))
        };
        edit_object(job, &[], |job| {
            if asked(Field::Replicas) || (set.ancestor.is_some() && !job.contains_key("replicas")) {
                insert_after(job, Some("name"), "replicas", set.replicas.into());
            }
        });
        edit_object(job, &["template", "spec"], |spec| {
            for key in ["completions", "parallelism"] {
                if asked(Field::Count) || !spec.contains_key(key) {
                    insert_after(spec, None, key, set.count.into());
                }
            }
        });
    }

    fn write_pod(&self, pod: &mut Value, position: u32, init_order: Option<&Vec<ContainerId>>) {
        self.write_fields(pod, PlaceScope::PodSet(position));
        for list in [Field::InitContainers, Field::Containers] {
            for id in self.record.containers(position, list) {
                self.write_container(pod, id);
            }
        }
        if let Some(order) = init_order {
            let name = |id: &ContainerId| self.record.container(*id).map(|c| c.name.clone());
            let names: Vec<_> = order.iter().filter_map(name).collect();
            edit_list(pod, shape(Field::InitContainers).0, |list| {
                list.sort_by_key(|json| {
                    names
                        .iter()
                        .position(|name| json.get("name") == Some(&json!(**name)))
                });
            });
        }
    }

    fn write_container(&self, pod: &mut Value, id: ContainerId) {
        let scope = PlaceScope::Container(id);
        let Some(container) = self.record.container(id) else {
            return;
        };
        if !self.touched.keys().any(|(touched, _)| *touched == scope) {
            return;
        }
        edit_list(pod, shape(container.list).0, |list| {
            let named =
                |json: &Value| json.get("name").and_then(Value::as_str) == Some(&*container.name);
            if !list.iter().any(named) {
                list.push(json!({ "name": &*container.name }));
            }
            if let Some(json) = list.iter_mut().find(|json| named(json)) {
                self.write_fields(json, scope);
            }
        });
    }

    /// Writes the changed fields of one pod template or container.
    fn write_fields(&self, json: &mut Value, scope: PlaceScope) {
        let Some(fields) = self.record.fields(scope) else {
            return;
        };
        for ((_, field), changed) in self.touched.iter().filter(|((of, _), _)| *of == scope) {
            let entries = fields.all(*field);
            let (keys, shape) = shape(*field);
            match shape {
                Shape::One => write_one(json, keys, entries),
                Shape::Map => edit_object(json, keys, |object| write_map(object, entries, changed)),
                Shape::List(by) if !field.holds_containers() => edit_list(json, keys, |list| {
                    let rebuilt = rebuilt(list, *field, by, entries, changed);
                    *list = if *field == Field::Env {
                        order::references_first(rebuilt, entries)
                    } else {
                        rebuilt
                    };
                }),
                Shape::List(_) | Shape::Job | Shape::Elsewhere => {}
            }
        }
    }
}

fn write_one(json: &mut Value, keys: &[&str], entries: &[Entry]) {
    let Some((last, above)) = keys.split_last() else {
        return;
    };
    edit_object(json, above, |object| {
        match entries.first().and_then(|entry| entry.datum.to_json()) {
            Some(value) => drop(object.insert((*last).to_owned(), value)),
            None => drop(object.shift_remove(*last)),
        }
    });
}

fn write_map(object: &mut Map<String, Value>, entries: &[Entry], changed: &BTreeSet<String>) {
    for key in changed
        .iter()
        .filter(|key| !entries.iter().any(|entry| *entry.key == ***key))
    {
        object.shift_remove(key);
    }
    for entry in entries.iter().filter(|entry| changed.contains(&*entry.key)) {
        object.extend(
            entry
                .datum
                .to_json()
                .map(|value| (entry.key.to_string(), value)),
        );
    }
}

/// A list with its changes: unchanged items to the letter, changed ones in their places, additions in the record's order.
fn rebuilt(
    old: &[Value],
    field: Field,
    by: ListKey,
    entries: &[Entry],
    changed: &BTreeSet<String>,
) -> Vec<Value> {
    let mut out = Vec::with_capacity(old.len() + entries.len());
    let mut written = BTreeSet::new();
    for (at, item) in old.iter().enumerate() {
        match item_key(by, at, item).filter(|key| changed.contains(key)) {
            None => out.push(item.clone()),
            Some(key) => {
                if let Some(entry) = entries.iter().find(|entry| *entry.key == *key)
                    && written.insert(key.clone())
                {
                    out.push(item_json(field, &key, &entry.datum));
                }
            }
        }
    }
    let additions = entries
        .iter()
        .filter(|entry| changed.contains(&*entry.key) && !written.contains(&*entry.key));
    out.extend(additions.map(|entry| item_json(field, &entry.key, &entry.datum)));
    out
}

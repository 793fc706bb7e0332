//! Writes the record into the runtime's JobSet template, once.
//!
//! Only changes are written, and existing fields keep their positions. Everything else that the runtime's author wrote, including fields that
//! the record does not model, stays unchanged (W28, W29, W63, W68, W72).

mod order;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use trainyard_api::JobSet;
use trainyard_model::{
    object::{
        Content, Data, DataValue, EmittedObject, REPORTS_ANNOTATION, SecretType, SecretValue,
    },
    record::{
        ContainerId, Datum, Entries, Entry, EntryRef, EntryScope, Field, ListKey, Record, Shape,
    },
};

pub(crate) use self::order::place_init_containers;
use crate::{
    additions,
    json::{edit_at, edit_list, edit_object, get, insert_after},
};

/// The entries that changed, sorted and without duplicates, so those of a scope are adjacent, and among them those of a field.
struct Changed<'c>(Vec<&'c EntryRef>);

/// The changed entries of one field, sorted by key.
#[derive(Clone, Copy)]
struct Keys<'c>(&'c [&'c EntryRef]);

impl<'c> Changed<'c> {
    fn new(entries: impl Iterator<Item = &'c EntryRef>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable();
        entries.dedup();
        Self(entries)
    }

    /// Returns the changed fields of a scope.
    fn fields(&self, scope: EntryScope) -> impl Iterator<Item = (Field, Keys<'_>)> {
        let start = self.0.partition_point(|entry| entry.scope < scope);
        let from = self.0.get(start..).unwrap_or_default();
        let of_scope = from.partition_point(|entry| entry.scope == scope);
        let of_scope = from.get(..of_scope).unwrap_or_default();
        let fields = of_scope.chunk_by(|a, b| a.field == b.field);
        fields.filter_map(|entries| Some((entries.first()?.field, Keys(entries))))
    }

    /// Whether a field of a scope changed.
    fn has(&self, scope: EntryScope, field: Field) -> bool {
        self.fields(scope).any(|(changed, _)| changed == field)
    }
}

impl Keys<'_> {
    fn contains(self, key: &str) -> bool {
        self.0
            .binary_search_by(|entry| (*entry.key).cmp(key))
            .is_ok()
    }
}

/// Returns the template's spec with the changed entries of the record.
pub(crate) fn assemble<'c>(
    template: &Value,
    record: &Record,
    changed: impl Iterator<Item = &'c EntryRef>,
) -> Value {
    let writer = Writer {
        record,
        changed: &Changed::new(changed),
    };
    let mut spec = template.clone();
    edit_list(&mut spec, &["replicatedJobs"], |jobs| {
        for job in jobs {
            remove_empty(job);
            let name = get(job, "name").and_then(Value::as_str);
            if let Some(position) = name.and_then(|name| record.pod_set_named(name)) {
                writer.write_pod_set(job, position);
            }
        }
    });
    spec
}

/// Returns a JobSet with this spec and the record's metadata.
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

/// Removes members that JobSet's types omit if they are empty (`omitempty`), and that its webhook refuses if they are not omitted.
fn remove_empty(job: &mut Value) {
    let Some(job) = job.as_object_mut() else {
        return;
    };
    let waits_for = job.get("dependsOn").and_then(Value::as_array);
    if waits_for.is_some_and(Vec::is_empty) {
        job.remove("dependsOn");
    }
    if job.get("groupName").and_then(Value::as_str) == Some("") {
        job.remove("groupName");
    }
}

/// Returns an emitted object as JSON.
pub(crate) fn object(object: &EmittedObject, namespace: &str) -> Value {
    let mut annotations = object.annotations.clone();
    if !object.reports.is_empty() {
        let rules = object.reports.iter();
        let rules: BTreeMap<_, _> = rules
            .map(|(state, text)| (state.to_string(), text))
            .collect();
        annotations.insert(REPORTS_ANNOTATION.to_owned(), json!(rules).to_string());
    }
    let mut metadata = Map::with_capacity(4);
    metadata.insert("name".to_owned(), object.name.as_str().into());
    metadata.insert("namespace".to_owned(), namespace.into());
    for (key, texts) in [("labels", &object.labels), ("annotations", &annotations)] {
        if !texts.is_empty() {
            metadata.insert(key.to_owned(), json!(texts));
        }
    }
    let mut out = Map::with_capacity(5);
    out.insert("apiVersion".to_owned(), object.kind.api_version().into());
    out.insert("kind".to_owned(), object.kind.kind().into());
    out.insert("metadata".to_owned(), Value::Object(metadata));
    match &object.content {
        Content::ConfigMap(data) => config_map(&mut out, data),
        Content::Secret { secret_type, data } => secret(&mut out, secret_type, data),
        Content::Body(body) => out.extend(body.clone()),
    }
    Value::Object(out)
}

/// Adds the content of a ConfigMap.
fn config_map(out: &mut Map<String, Value>, data: &Data<String>) {
    let (mut texts, mut bytes) = (Map::new(), Map::new());
    for (key, held) in data.iter() {
        let (members, value) = match held {
            DataValue::Text(text) => (&mut texts, text.clone()),
            DataValue::Bytes(value) => (&mut bytes, BASE64_STANDARD.encode(value)),
        };
        members.insert(key.to_owned(), value.into());
    }
    for (member, values) in [("data", texts), ("binaryData", bytes)] {
        if !values.is_empty() {
            out.insert(member.to_owned(), Value::Object(values));
        }
    }
    if data.immutable {
        out.insert("immutable".to_owned(), true.into());
    }
}

/// Adds the content of a Secret. A value with key material is written to `data` with its placeholders, which is not base64. The API server
/// therefore rejects the object if another program applies it, and no Secret contains a placeholder instead of a key.
fn secret(out: &mut Map<String, Value>, secret_type: &SecretType, data: &Data<SecretValue>) {
    let value = |held: &DataValue<SecretValue>| match held {
        DataValue::Text(text) if text.has_material() => text.shown().to_owned(),
        DataValue::Text(text) => BASE64_STANDARD.encode(text.shown()),
        DataValue::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
    };
    let values = data.iter();
    let values: Map<_, _> = values
        .map(|(key, held)| (key.to_owned(), value(held).into()))
        .collect();
    out.insert("type".to_owned(), secret_type.as_str().into());
    if !values.is_empty() {
        out.insert("data".to_owned(), Value::Object(values));
    }
    if data.immutable {
        out.insert("immutable".to_owned(), true.into());
    }
}

/// Writes the changed entries of a record into JSON.
struct Writer<'a> {
    record: &'a Record,
    changed: &'a Changed<'a>,
}

impl Writer<'_> {
    fn write_pod_set(&self, job: &mut Value, position: u32) {
        self.write_counts(job, position);
        edit_at(job, &["template", "spec", "template"], |pod| {
            self.write_pod(pod, position)
        });
    }

    /// Writes the numbers of pods and jobs of a replicated job, and its backoff limit. Values that did not change stay (W69). Absent numbers of
    /// pods and jobs are written like the reference does.
    fn write_counts(&self, job: &mut Value, position: u32) {
        let Some(set) = self.record.pod_set(position) else {
            return;
        };
        let asked = |field| self.changed.has(EntryScope::PodSet(position), field);
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
            let limit = set
                .fields
                .one(Field::BackoffLimit)
                .filter(|_| asked(Field::BackoffLimit));
            if let Some(limit) = limit.and_then(Datum::to_json) {
                insert_after(spec, None, "backoffLimit", limit);
            }
        });
    }

    fn write_pod(&self, pod: &mut Value, position: u32) {
        self.write_fields(pod, EntryScope::PodSet(position));
        for list in [Field::InitContainers, Field::Containers] {
            self.write_containers(pod, position, list);
        }
        let set = self.record.pod_set(position);
        if let Some(order) = set.and_then(|set| set.init_order.as_deref()) {
            let name = |id: &ContainerId| Some(&*self.record.container(*id)?.name);
            let names = order.iter().filter_map(name).enumerate();
            let places: BTreeMap<&str, usize> = names.map(|(at, name)| (name, at)).collect();
            edit_list(pod, Field::InitContainers.keys(), |list| {
                list.sort_by_key(|json| places.get(name_of(json)?).copied());
            });
        }
    }

    /// Writes the changed fields of the containers of one list.
    fn write_containers(&self, pod: &mut Value, position: u32, list: Field) {
        let is_changed = |id: &ContainerId| {
            let mut fields = self.changed.fields(EntryScope::Container(*id));
            fields.next().is_some()
        };
        let changed = self.record.containers(position, list);
        let mut changed = changed.filter(is_changed).peekable();
        if changed.peek().is_none() {
            return;
        }
        edit_list(pod, list.keys(), |items| {
            let mut places = BTreeMap::new();
            for (at, item) in items.iter().enumerate() {
                if let Some(name) = name_of(item) {
                    places.entry(Arc::<str>::from(name)).or_insert(at);
                }
            }
            for id in changed {
                let Some(container) = self.record.container(id) else {
                    continue;
                };
                let at = *places.entry(container.name.clone()).or_insert(items.len());
                if at == items.len() {
                    items.push(json!({ "name": &*container.name }));
                }
                if let Some(json) = items.get_mut(at) {
                    self.write_fields(json, EntryScope::Container(id));
                }
            }
        });
    }

    /// Writes the changed fields of one pod template or container.
    fn write_fields(&self, json: &mut Value, scope: EntryScope) {
        let Some(fields) = self.record.fields(scope) else {
            return;
        };
        for (field, changed) in self.changed.fields(scope) {
            let entries = fields.all(field);
            let keys = field.keys();
            match field.shape() {
                Shape::One => write_one(json, keys, entries),
                Shape::Map => edit_object(json, keys, |object| write_map(object, entries, changed)),
                Shape::List(by) if !field.holds_containers() => edit_list(json, keys, |list| {
                    let rebuilt = rebuild(std::mem::take(list), field, by, entries, changed);
                    *list = if field == Field::Env {
                        order::references_first(rebuilt, entries)
                    } else {
                        rebuilt
                    };
                }),
                Shape::Additions => additions::write(json, field, entries),
                Shape::Members => write_members(json, keys, entries),
                Shape::List(_) | Shape::Job | Shape::Elsewhere => {}
            }
        }
    }
}

/// The name of a container.
fn name_of(container: &Value) -> Option<&str> {
    get(container, "name").and_then(Value::as_str)
}

fn write_one(json: &mut Value, keys: &[&str], entries: &Entries) {
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

/// Writes members by name, which are one or two levels down. Null removes a member, and its parent if that becomes empty.
fn write_members(json: &mut Value, keys: &[&str], entries: &Entries) {
    let value = |entry: &Entry| entry.datum.to_json().unwrap_or_default();
    // Members are set before others are removed, so a parent that stays keeps its position.
    let (gone, set): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| value(entry).is_null());
    for entry in set.into_iter().chain(gone) {
        let member: Vec<&str> = entry.key.split('/').collect();
        let Some((name, above)) = member.split_last() else {
            continue;
        };
        let above: Vec<&str> = keys.iter().chain(above).copied().collect();
        edit_at(json, &above, |object| {
            let was_empty = is_empty(object);
            edit_at(object, &[*name], |slot| *slot = value(entry));
            if is_empty(object) && !was_empty && entry.key.contains('/') {
                *object = Value::Null;
            }
        });
    }
}

fn is_empty(object: &Value) -> bool {
    object.as_object().is_some_and(Map::is_empty)
}

fn write_map(object: &mut Map<String, Value>, entries: &Entries, changed: Keys<'_>) {
    let removed = |key: &str| changed.contains(key) && entries.get(key).is_none();
    object.retain(|key, _| !removed(key));
    for entry in entries.iter().filter(|entry| changed.contains(&entry.key)) {
        object.extend(
            entry
                .datum
                .to_json()
                .map(|value| (entry.key.to_string(), value)),
        );
    }
}

/// Returns a list with its changes: unchanged items as they were, changed items in their positions, and additions in the record's order.
fn rebuild(
    old: Vec<Value>,
    field: Field,
    by: ListKey,
    entries: &Entries,
    changed: Keys<'_>,
) -> Vec<Value> {
    let mut out = Vec::with_capacity(old.len() + changed.0.len());
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in old.into_iter().enumerate() {
        let key = by.of(at, &item);
        let Some(key) = key.filter(|key| changed.contains(key)) else {
            out.push(item);
            continue;
        };
        if let Some(entry) = entries.get(&*key)
            && written.insert(&entry.key)
        {
            out.push(field.item_of(&entry.key, &entry.datum));
        }
    }
    let additions = entries
        .iter()
        .filter(|entry| changed.contains(&entry.key) && !written.contains(&*entry.key));
    out.extend(additions.map(|entry| field.item_of(&entry.key, &entry.datum)));
    out
}

//! The compared objects by name, and what is refused of them.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::{Admitted, Located, ObjectId, names, runtime::RuntimeKind};
use trainyard_divergences::{
    difference::{Answer, Difference, Refusal},
    live::listed,
    seen::Subject,
};
use trainyard_render::InputJob;

use super::objects::Finding;

/// An object by kind, namespace and name.
pub(super) type Key = (String, Option<String>, String);

/// Adds a refusal to what was found at its object.
pub(super) fn add_to(
    found: &mut BTreeMap<Key, Vec<Finding>>,
    originals: &BTreeMap<Key, Value>,
    located: &Located,
) {
    let Some(object) = &located.location.object else {
        return;
    };
    let key = key_of_id(object);
    let findings = refused(subject_of(originals, &key, &[]), vec![refusal(located)]);
    found.entry(key).or_default().extend(findings);
}

/// Returns an object with its runtime, if it is a TrainJob.
pub(super) fn subject_of<'s>(
    originals: &'s BTreeMap<Key, Value>,
    key: &Key,
    documents: &'s [Value],
) -> Subject<'s> {
    let own = originals.get(key).unwrap_or(&Value::Null);
    if key.0 != names::TRAIN_JOB {
        return Subject {
            job: &Value::Null,
            runtime: own,
            documents,
        };
    }
    let reference = own.pointer("/spec/runtimeRef");
    let text = |field: &str| reference?.get(field)?.as_str().map(str::to_owned);
    let kind = text("kind").unwrap_or_else(|| names::CLUSTER_TRAINING_RUNTIME.to_owned());
    let namespace = key.1.clone().filter(|_| kind == names::TRAINING_RUNTIME);
    let runtime = (kind, namespace, text("name").unwrap_or_default());
    Subject {
        job: own,
        runtime: originals.get(&runtime).unwrap_or(&Value::Null),
        documents,
    }
}

/// Returns refusals with the rows that list them.
pub(super) fn refused(subject: Subject<'_>, refusals: Vec<Refusal>) -> Vec<Finding> {
    let answer = Answer {
        refused: refusals,
        ..Answer::default()
    };
    let found = listed(subject, &answer, &Answer::default()).into_iter();
    let refusals = found.filter(|it| matches!(it.difference, Difference::RefusedByTrainyard(_)));
    refusals.map(Finding::of_difference).collect()
}

pub(super) fn refusal(located: &Located) -> Refusal {
    let location = &located.location;
    Refusal {
        object: location
            .object
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        by: String::new(),
        field: match location.field.is_root() {
            true => String::new(),
            false => location.field.to_string(),
        },
        error: located.message.clone(),
    }
}

pub(super) fn key_of(admitted: &Admitted) -> Key {
    (
        admitted.object.kind.clone(),
        admitted.namespace.clone(),
        admitted.object.metadata.name.clone(),
    )
}

pub(super) fn key_of_id(object: &ObjectId) -> Key {
    (
        object.kind.clone(),
        object.namespace.clone(),
        object.name.clone(),
    )
}

pub(super) fn job_key(job: &InputJob) -> Key {
    let name = job.train_job.metadata.name.clone();
    (
        names::TRAIN_JOB.to_owned(),
        Some(job.namespace.clone()),
        name,
    )
}

pub(super) fn runtime_key(job: &InputJob) -> Key {
    let reference = &job.train_job.runtime_ref;
    let is_namespaced = reference.kind == RuntimeKind::Namespaced;
    (
        reference.kind.to_string(),
        is_namespaced.then(|| job.namespace.clone()),
        reference.name.clone(),
    )
}

pub(super) fn id((kind, namespace, name): &Key) -> ObjectId {
    ObjectId {
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    }
}

/// Sets the namespace of an object that has none.
pub(super) fn with_namespace(mut object: Value, namespace: Option<&str>) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(metadata), Some(namespace)) = (metadata, namespace) {
        metadata
            .entry("namespace")
            .or_insert_with(|| namespace.into());
    }
    object
}

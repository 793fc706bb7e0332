//! The names of the compared objects.

use serde_json::Value;
use trainyard_api::{Admitted, ObjectId, names, runtime::RuntimeKind};
use trainyard_render::InputJob;

/// An object by kind, namespace and name.
pub(super) type Key = (String, Option<String>, String);

/// Returns the runtime that a TrainJob in a namespace references.
pub(super) fn reference_of(job: &Value, namespace: &str) -> Key {
    let reference = job.pointer("/spec/runtimeRef");
    let text = |field: &str| reference?.get(field)?.as_str().map(str::to_owned);
    let kind = text("kind").unwrap_or_else(|| names::CLUSTER_TRAINING_RUNTIME.to_owned());
    let is_namespaced = kind == names::TRAINING_RUNTIME;
    let namespace = is_namespaced.then(|| namespace.to_owned());
    (kind, namespace, text("name").unwrap_or_default())
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

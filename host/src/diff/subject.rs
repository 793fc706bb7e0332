//! What is refused of the compared objects.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::{Located, names};
use trainyard_divergences::{
    difference::{Answer, Difference, Refusal},
    live::listed,
    seen::Subject,
};
use trainyard_model::record::Accelerators;

use super::{
    keys::{Key, key_of_id, reference_of},
    objects::Finding,
};

/// Adds a refusal to what was found at its object.
pub(super) fn add_to(
    found: &mut BTreeMap<Key, Vec<Finding>>,
    originals: &BTreeMap<Key, Value>,
    accelerators: &Accelerators,
    located: &Located,
) {
    let Some(object) = &located.location.object else {
        return;
    };
    let key = key_of_id(object);
    let findings = refused(
        subject_of(originals, &key, accelerators),
        vec![refusal(located)],
    );
    found.entry(key).or_default().extend(findings);
}

/// Returns an object with its runtime, if it is a TrainJob.
pub(super) fn subject_of<'s>(
    originals: &'s BTreeMap<Key, Value>,
    key: &Key,
    accelerators: &'s Accelerators,
) -> Subject<'s> {
    let own = originals.get(key).unwrap_or(&Value::Null);
    if key.0 != names::TRAIN_JOB {
        return Subject {
            job: &Value::Null,
            runtime: own,
            documents: &[],
            accelerators,
        };
    }
    let runtime = reference_of(own, key.1.as_deref().unwrap_or_default());
    Subject {
        job: own,
        runtime: originals.get(&runtime).unwrap_or(&Value::Null),
        documents: &[],
        accelerators,
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

//! The normal form of an object, which is equal for objects that Kubernetes treats as equal, and for scripts of plugins with one effect.

use serde_json::{Map, Value};

use crate::{form::form, plugins::PLUGINS};

/// Returns the normal form of an object of either side.
pub(crate) fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata");
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        // Offline, Trainyard's objects have no owner, because its UID is unknown.
        metadata.remove("ownerReferences");
    }
    if object["kind"] == "Secret" {
        // Key material differs in each run.
        for field in ["data", "stringData"] {
            let values = object.get_mut(field).and_then(Value::as_object_mut);
            let values = values.into_iter().flat_map(Map::values_mut);
            values.for_each(|value| *value = "".into());
        }
    }
    for (_, plugin) in PLUGINS {
        if let Some(effect) = plugin.effect {
            effect(&mut object);
        }
    }
    form(&object)
}

//! The JobSet of a TrainJob.

use serde_json::{Map, Value};

use crate::{StringMap, names};

/// A JobSet: a typed header and a `spec`.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSet {
    /// Its name, which is that of the TrainJob.
    pub name: String,
    /// Its namespace, which is omitted if `None`.
    pub namespace: Option<String>,
    /// Its labels, in order.
    pub labels: StringMap,
    /// Its annotations, in order.
    pub annotations: StringMap,
    /// Its `spec`, of JobSet v1alpha2.
    pub spec: Value,
}

impl JobSet {
    /// Returns the object to apply. Keys have their usual order, and empty maps are omitted.
    pub fn into_value(self) -> Value {
        let mut metadata = Map::with_capacity(4);
        metadata.insert("name".to_owned(), Value::String(self.name));
        if let Some(namespace) = self.namespace {
            metadata.insert("namespace".to_owned(), Value::String(namespace));
        }
        for (key, strings) in [("labels", self.labels), ("annotations", self.annotations)] {
            if !strings.is_empty() {
                metadata.insert(
                    key.to_owned(),
                    strings
                        .into_iter()
                        .map(|(key, value)| (key, Value::String(value)))
                        .collect(),
                );
            }
        }
        let mut object = Map::with_capacity(4);
        object.insert("apiVersion".to_owned(), names::JOB_SET_API_VERSION.into());
        object.insert("kind".to_owned(), names::JOB_SET.into());
        object.insert("metadata".to_owned(), Value::Object(metadata));
        object.insert("spec".to_owned(), self.spec);
        Value::Object(object)
    }
}

//! The JobSet that a TrainJob becomes.

use serde_json::{Map, Value, json};

use crate::{StringMap, names};

/// A JobSet: a typed header over a `spec` that is assembled elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSet {
    /// Its name, that of the TrainJob.
    pub name: String,
    /// Its namespace; None leaves it out.
    pub namespace: Option<String>,
    /// Its labels, in this order.
    pub labels: StringMap,
    /// Its annotations, in this order.
    pub annotations: StringMap,
    /// Its `spec`, as JobSet v1alpha2 has it.
    pub spec: Value,
}

impl JobSet {
    /// The object to apply. Keys stand in the order in which people write them; empty maps are left out.
    pub fn into_value(self) -> Value {
        let mut metadata = Map::new();
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
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!(names::JOB_SET_API_VERSION));
        object.insert("kind".to_owned(), json!(names::JOB_SET));
        object.insert("metadata".to_owned(), Value::Object(metadata));
        object.insert("spec".to_owned(), self.spec);
        Value::Object(object)
    }
}

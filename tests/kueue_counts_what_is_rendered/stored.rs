//! The objects of an input as a cluster stores them, which is what Kueue reads.

use serde_json::{Value, json};
use trainyard_api::{names, yaml};
use trainyard_schema::documents::Kind;
use trainyard_structural::Schema;

/// The schemas of our kinds, as an API server has them.
pub(super) struct Cluster(Vec<(Kind, Schema)>);

impl Cluster {
    pub(super) fn new() -> Self {
        let compiled = |kind: Kind| (kind, kind.compiled_schema().unwrap());
        Self(Kind::ALL.into_iter().map(compiled).collect())
    }

    /// Returns the objects of an input; `None` if an API server refuses one of them, such as an old form that only Trainyard's commands
    /// accept.
    pub(super) fn store(&self, input: &str) -> Option<Vec<Value>> {
        let documents = yaml::read(input).into_iter();
        documents
            .map(|document| self.store_one(document.ok()?.value))
            .collect()
    }

    fn store_one(&self, mut object: Value) -> Option<Value> {
        let is_ours = |(kind, _): &&(Kind, Schema)| object["kind"] == kind.name();
        let (kind, schema) = match self.0.iter().find(is_ours) {
            None => return Some(in_namespace(object)),
            Some(ours) => ours,
        };
        if object["apiVersion"] != names::TRAINER_API_VERSION {
            return None;
        }
        let outcome = schema.admit(&mut object, None, &kind.options());
        let is_cluster_wide = *kind == Kind::ClusterTrainingRuntime;
        outcome.errors.is_empty().then(|| match is_cluster_wide {
            true => object,
            false => in_namespace(object),
        })
    }
}

/// Returns an object of a namespace, by default of the one that `render` uses.
fn in_namespace(mut object: Value) -> Value {
    let is_cluster_wide = object["kind"] == "RuntimeClass";
    if !is_cluster_wide && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

//! A parsed runtime.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::{Admitted, Runtime, names};

use crate::admission;

/// A parsed runtime, with the object as it was written.
#[derive(Clone, Debug)]
pub(crate) struct ReadRuntime {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) object: Arc<Value>,
}

impl ReadRuntime {
    /// Parses a stored runtime.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(object: Value) -> Result<Self, String> {
        Self::of(object, |_| {})
    }

    /// Parses the runtime of a snapshot. It was accepted when the snapshot was made, by an earlier release or the reference, so it is not
    /// refused for what the schema of this release refuses.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn read_snapshot(object: Value) -> Result<Self, String> {
        Self::of(object, |admitted| admitted.errors.clear())
    }

    fn of(object: Value, accept: impl FnOnce(&mut Admitted)) -> Result<Self, String> {
        let admitted = admission::admit(object.clone());
        let mut admitted = admitted.map_err(|errors| errors.join("; "))?;
        accept(&mut admitted);
        if admitted.errors.is_empty() && !Runtime::is(&admitted.object) {
            return Err(format!(
                "is neither a {} nor a {}",
                names::TRAINING_RUNTIME,
                names::CLUSTER_TRAINING_RUNTIME
            ));
        }
        let runtime = admitted.runtime();
        let runtime = runtime.ok_or_else(|| admission::errors_of(&admitted).join("; "))?;
        Ok(Self {
            runtime: Arc::new(runtime),
            object: Arc::new(object),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn runtime(ml_policy: &Value, network: &Value) -> Value {
        let template = json!({"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}});
        json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": names::TRAINING_RUNTIME,
            "metadata": {"name": "torch", "namespace": "ml"},
            "spec": {
                "mlPolicy": ml_policy,
                "template": {"spec": {"network": network, "replicatedJobs": [{"name": "node", "template": template}]}},
            },
        })
    }

    /// The reference's CRDs may accept what ours refuse.
    #[test]
    fn schema_refuses_a_stored_runtime_but_not_that_of_a_snapshot() {
        let valid = runtime(&json!({}), &json!({}));
        let read = ReadRuntime::read(valid.clone()).unwrap();
        assert_eq!(*read.object, valid);
        assert_eq!(
            read.runtime.template.spec["replicatedJobs"][0]["replicas"],
            1
        );

        let unknown = runtime(&json!({}), &json!({"newer": true}));
        let error = ReadRuntime::read(unknown.clone()).unwrap_err();
        let wanted = "unknown field \"spec.template.spec.network.newer\"";
        assert_eq!(error, wanted);
        let snapshot = ReadRuntime::read_snapshot(unknown).unwrap();
        assert_eq!(*snapshot.runtime, *read.runtime);

        let no_nodes = runtime(&json!({"numNodes": 0}), &json!({}));
        let error = ReadRuntime::read(no_nodes.clone()).unwrap_err();
        assert!(
            error.starts_with("spec.mlPolicy.numNodes: Invalid value: 0: "),
            "{error}"
        );
        let error = ReadRuntime::read_snapshot(no_nodes).unwrap_err();
        assert!(
            error.starts_with("spec.mlPolicy.numNodes: invalid value: integer `0`"),
            "{error}"
        );
    }
}

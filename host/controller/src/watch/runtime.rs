//! A parsed runtime.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::{Admitted, Located, Object, Runtime, Source, names};

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
        Ok(Self {
            runtime: Arc::new(read(object.clone())?),
            object: Arc::new(object),
        })
    }
}

fn read(value: Value) -> Result<Runtime, String> {
    let source = Source::new("the cluster", 1);
    let object = Object::read(source, value).map_err(|errors| errors.to_string())?;
    let mut admitted = Admitted::new(object, "");
    if admitted.errors.is_empty() && !Runtime::is(&admitted.object) {
        return Err(format!(
            "is neither a {} nor a {}",
            names::TRAINING_RUNTIME,
            names::CLUSTER_TRAINING_RUNTIME
        ));
    }
    let runtime = admitted.runtime();
    runtime.ok_or_else(|| {
        let errors: Vec<_> = admitted.errors.iter().map(Located::in_object).collect();
        errors.join("; ")
    })
}

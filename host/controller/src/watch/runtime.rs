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

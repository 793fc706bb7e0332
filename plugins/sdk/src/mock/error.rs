//! Why a test has no outcome.

use std::fmt;

use trainyard_model::{
    claims::PathError,
    pipeline::{Clash, PendingLookup, PhaseError},
    plan::PlanError,
    session::{CallError, MissingObject},
};

use crate::native::NativeError;

/// The reason why a test has no outcome: the host's own error, or a plugin that no host would load.
///
/// `Debug` prints the same as `Display`, so that `unwrap` in a test shows a readable message.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// A phase failed after its call.
    #[error(transparent)]
    Phase(Box<PhaseError>),
    /// A plugin looks up an object that the test did not add, such as with [`MockJob::object`](super::MockJob::object).
    #[error("{0}; add the object to the test with `object`")]
    NoObject(Box<PendingLookup>),
    /// A volume or an env var refers to an object of the plugin that it did not emit.
    #[error("{}: {}", .0.place, .0)]
    MissingObject(Box<MissingObject>),
    /// Plugins changed the same field without a declared order, or emitted the same object.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Clash(Vec<Clash>),
    /// The plugin is not loaded.
    #[error(transparent)]
    Plugin(Box<NativeError>),
    /// The plugins have no order, or cannot be active together.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Order(Vec<PlanError>),
    /// The configuration does not match its schema.
    #[error("the configuration is refused: {0}")]
    Config(String),
    /// A grant is not a valid path.
    #[error("the grant {0}")]
    Grant(#[from] PathError),
    /// The limit does not exist or cannot have this value.
    #[error("the limits are refused: {0}")]
    Limits(#[from] serde_json::Error),
    /// The YAML, the TrainJob or its runtime is refused, with a line for each error.
    #[cfg(feature = "yaml")]
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
}

impl From<NativeError> for MockError {
    fn from(error: NativeError) -> Self {
        Self::Plugin(Box::new(error))
    }
}

impl fmt::Debug for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

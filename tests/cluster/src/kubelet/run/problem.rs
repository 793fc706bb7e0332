//! Why a container does not start.

use thiserror::Error;

/// The reason why a container can't be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Problem {
    /// An object or a key does not exist yet. It is tried again.
    #[error("{0}")]
    Missing(String),
    /// This kubelet can't run the pod.
    #[error("{0}")]
    Unsupported(String),
    /// This machine failed.
    #[error("{0}")]
    Machine(String),
}

impl Problem {
    /// Returns the reason in the status of a pod that fails because of it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Missing(_) => "CreateContainerConfigError",
            Self::Unsupported(_) => "UnsupportedByFakeKubelet",
            Self::Machine(_) => "RunContainerError",
        }
    }

    /// Returns an error of this machine, with all its causes.
    pub(super) fn machine(error: impl Into<anyhow::Error>) -> Self {
        Self::Machine(format!("{:#}", error.into()))
    }
}

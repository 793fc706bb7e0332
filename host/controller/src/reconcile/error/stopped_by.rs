//! What stops a TrainJob that fails.

use super::ReconcileError;

/// What stops a TrainJob that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoppedBy {
    /// The API server refuses its objects, or does not serve their kind. Plugins decide what these are.
    ApiServer,
    /// Anything else.
    Other,
}

impl StoppedBy {
    /// Returns what stops a TrainJob that fails with this error.
    pub(crate) fn of(error: &ReconcileError) -> Self {
        let is_refused = match error {
            ReconcileError::NotServed { .. } => true,
            ReconcileError::Api { problem, .. } => match &**problem {
                kube::Error::Api(status) => match status.code {
                    // A quota is the namespace's, whatever the plugins are.
                    403 => !status.message.contains("exceeded quota"),
                    code => [400, 422].contains(&code),
                },
                _ => false,
            },
            _ => false,
        };
        if is_refused {
            Self::ApiServer
        } else {
            Self::Other
        }
    }
}

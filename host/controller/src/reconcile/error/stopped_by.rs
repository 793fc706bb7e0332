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
                    403 => !is_over_quota(error),
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

/// Whether the API server refuses an object because a quota of its namespace is exceeded.
pub(crate) fn is_over_quota(error: &ReconcileError) -> bool {
    let ReconcileError::Api { problem, .. } = error else {
        return false;
    };
    let kube::Error::Api(status) = &**problem else {
        return false;
    };
    status.code == 403 && status.message.contains("exceeded quota")
}

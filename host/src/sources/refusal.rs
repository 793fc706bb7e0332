//! Why a plugin of the cluster has no content.

use trainyard_controller::plugins::{PluginCondition, Problem, SourceError};
use trainyard_oci::{LayoutError, OciError, Problem as OciProblem, RegistryError, SignatureError};

/// Returns what is wrong with a plugin.
pub(crate) fn problem(condition: PluginCondition, reason: &str, message: String) -> Problem {
    Problem {
        condition,
        reason: reason.to_owned(),
        message,
    }
}

/// Returns an error that another attempt may not have.
pub(super) fn retry(message: impl ToString) -> SourceError {
    SourceError::Retry {
        after: None,
        message: message.to_string(),
    }
}

/// Returns the error of an operation with a registry or the store.
pub(super) fn of_oci(error: &OciError) -> SourceError {
    match kind(&error.problem) {
        None => retry(error),
        Some((condition, reason)) => {
            SourceError::Refused(problem(condition, reason, error.to_string()))
        }
    }
}

/// Returns the condition and the reason; `None` if another attempt may succeed although neither the PolicyPlugin nor the plugin changes.
fn kind(problem: &OciProblem) -> Option<(PluginCondition, &'static str)> {
    let pulled = |reason| Some((PluginCondition::Pulled, reason));
    match problem {
        OciProblem::Artifact(_) => pulled("NotAPlugin"),
        OciProblem::Registry(problem) => of_registry(problem),
        OciProblem::Signature(problem) => Some((PluginCondition::Verified, of_signature(problem))),
        OciProblem::TagMoved { .. } => pulled("TagMoved"),
        OciProblem::NotPinned | OciProblem::TargetDigest => pulled("NotPinned"),
        OciProblem::Everywhere { registry, .. } => kind(registry),
        OciProblem::Layout(LayoutError::Io { .. })
        | OciProblem::Transport(_)
        | OciProblem::Credential(_)
        | OciProblem::Deadline { .. } => None,
        OciProblem::Layout(_) => pulled("NotStored"),
    }
}

fn of_registry(problem: &RegistryError) -> Option<(PluginCondition, &'static str)> {
    let reason = match problem {
        // Credentials and networks change without the PolicyPlugin.
        RegistryError::Unauthorized { .. }
        | RegistryError::Unavailable { .. }
        | RegistryError::Token { .. } => return None,
        RegistryError::NotFound { .. } => "NotFound",
        RegistryError::ManifestDigest { .. } | RegistryError::BlobDigest { .. } => "DigestMismatch",
        RegistryError::BlobSize { .. } => "SizeMismatch",
        RegistryError::TooLarge { .. } => "TooLarge",
        RegistryError::Referrers { .. } | RegistryError::ManyReferrers { .. } => "Referrers",
        _ => "RegistryRefuses",
    };
    Some((PluginCondition::Pulled, reason))
}

const fn of_signature(problem: &SignatureError) -> &'static str {
    match problem {
        SignatureError::NoSigners => "NoSigners",
        SignatureError::Unsigned { .. }
        | SignatureError::OldLayout { .. }
        | SignatureError::UnsignedBuiltIn { .. } => "NotSigned",
        SignatureError::NoneCounts { .. } => "NoSignatureCounts",
        SignatureError::Flooded { .. } => "TooManySignatures",
        SignatureError::Name { .. } => "WrongSigner",
    }
}

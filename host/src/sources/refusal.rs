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
        OciProblem::NotPinned | OciProblem::TargetDigest => pulled("InvalidReference"),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use trainyard_oci::Digest;

    use super::*;

    #[test]
    fn what_a_registry_sends_wrongly_has_a_reason_and_what_may_pass_has_none() {
        let host = || "registry.example".to_owned();
        let digest = |bytes: &[u8]| Digest::of(bytes);
        let pulled = |reason| Some((PluginCondition::Pulled, reason));
        let moved = || OciProblem::TagMoved {
            tag: "1.0.0".to_owned(),
            wanted: digest(b"a"),
            found: digest(b"b"),
        };
        let after = Duration::from_secs(1);
        for (problem, expected) in [
            (moved(), pulled("TagMoved")),
            (
                OciProblem::Registry(RegistryError::ManifestDigest {
                    host: host(),
                    wanted: digest(b"a").to_string(),
                    found: digest(b"b"),
                }),
                pulled("DigestMismatch"),
            ),
            (
                OciProblem::Registry(RegistryError::BlobDigest {
                    host: host(),
                    wanted: digest(b"a"),
                    found: digest(b"b"),
                }),
                pulled("DigestMismatch"),
            ),
            (
                OciProblem::Registry(RegistryError::BlobSize {
                    host: host(),
                    declared: 1,
                    found: "2 bytes".to_owned(),
                }),
                pulled("SizeMismatch"),
            ),
            (
                OciProblem::Registry(RegistryError::TooLarge {
                    host: host(),
                    what: "a manifest",
                    limit: 1,
                }),
                pulled("TooLarge"),
            ),
            (
                OciProblem::Signature(SignatureError::NoSigners),
                Some((PluginCondition::Verified, "NoSigners")),
            ),
            // The registry counts, whatever its mirrors say.
            (
                OciProblem::Everywhere {
                    registry: Box::new(moved()),
                    mirrors: vec![OciProblem::Deadline { after }],
                },
                pulled("TagMoved"),
            ),
            (OciProblem::Deadline { after }, None),
        ] {
            assert_eq!(kind(&problem), expected, "{problem}");
        }
    }
}

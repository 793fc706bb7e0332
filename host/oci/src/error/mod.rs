//! The error of an operation.

mod layout;
mod registry;

use std::{fmt::Display, time::Duration};

use thiserror::Error;
use trainyard_text::clean;

pub use self::{layout::LayoutError, registry::RegistryError};
use crate::{
    artifact::ArtifactError, credentials::CredentialError, digest::Digest,
    signature::SignatureError, transport::TransportError,
};

/// Why an operation failed, with the reference.
#[derive(Debug, Error)]
#[error("{subject}: {problem}")]
pub struct OciError {
    /// The reference.
    pub subject: String,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

impl OciError {
    pub(crate) fn new(subject: &dyn Display, problem: Problem) -> Self {
        Self {
            subject: clean(&subject.to_string()),
            problem,
        }
    }
}

impl OciError {
    /// Whether it may pass by itself, so that the same operation is worth another attempt soon: a host was not reached, was overloaded or broken,
    /// or there was not enough time. With mirrors, if that is so for one of them or for the registry.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.problem.is_transient()
    }
}

impl Problem {
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Transport(_) | Self::Deadline { .. } => true,
            Self::Registry(problem) => matches!(
                problem,
                RegistryError::Unavailable { .. } | RegistryError::Token { .. }
            ),
            Self::Everywhere { registry, mirrors } => {
                registry.is_transient() || mirrors.iter().any(Self::is_transient)
            }
            _ => false,
        }
    }
}

/// Returns the problems of mirrors in a line.
fn joined(problems: &[Problem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

/// What is wrong with an operation.
#[derive(Debug, Error)]
pub enum Problem {
    /// The manifest does not describe a plugin, or its content is not one.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The registry refused, or sent something wrong.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There was no answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The credentials cannot be read.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The folder is not in the layout, or has no such plugin.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// It is not signed as required.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The operation took too long as a whole.
    #[error(
        "not done within {after:?}; the network or the registry is too slow, so try again, or raise the limit"
    )]
    Deadline {
        /// The limit.
        after: Duration,
    },
    /// The tag and the digest of a reference disagree.
    #[error(
        "the tag {tag} now has the digest {found}, but {wanted} is wanted: another file was pushed under this tag; \
         find out why, and write the reference without the tag to use what has the wanted digest"
    )]
    TagMoved {
        /// The tag.
        tag: String,
        /// The digest in the reference.
        wanted: Digest,
        /// The tag's digest in the registry.
        found: Digest,
    },
    /// Neither the mirrors nor the registry have it.
    #[error("{registry} (mirrors failed, too: {})", joined(.mirrors))]
    Everywhere {
        /// The registry's problem.
        #[source]
        registry: Box<Self>,
        /// The mirrors, each with its problem.
        mirrors: Vec<Self>,
    },
    /// A stored plugin is asked for by a tag.
    #[error("has no digest, by which plugins are stored; write it with `@sha256:DIGITS`")]
    NotPinned,
    /// The target of a push or a copy has a digest but no tag.
    #[error("has a digest, which the content decides; write the target with a tag only")]
    TargetDigest,
}

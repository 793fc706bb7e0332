//! What is wrong with the answers of a registry.

use http::StatusCode;
use thiserror::Error;

use crate::digest::Digest;

/// Why a registry's answer is of no use.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// It has no such manifest or blob.
    #[error("{host} has no {what}; check the registry, the repository and the tag")]
    NotFound {
        /// The host.
        host: String,
        /// What is missing.
        what: String,
    },
    /// It refuses access.
    #[error(
        "{host} refuses access to {repository} {credential}; run `docker login {host}` as a user who may {action}, or pass --registry-config"
    )]
    Unauthorized {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// Whether there was a credential, in words.
        credential: &'static str,
        /// `pull` or `push`.
        action: &'static str,
    },
    /// It refuses the request.
    #[error("{host} answered {status}{message}; check what this registry accepts")]
    Refused {
        /// The host.
        host: String,
        /// The status.
        status: StatusCode,
        /// The registry's own message, with a colon, or nothing.
        message: String,
    },
    /// It is overloaded or broken.
    #[error("{host} answered {status}{message}; try again later")]
    Unavailable {
        /// The host.
        host: String,
        /// The status.
        status: StatusCode,
        /// The registry's own message, with a colon, or nothing.
        message: String,
    },
    /// It redirects too often.
    #[error(
        "{host} redirects in a loop, or more than {limit} times; check the URL of the registry or mirror"
    )]
    Redirects {
        /// The host.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// It redirects to something that is not followed.
    #[error(
        "{host} redirects to `{to}`, which is not followed: {reason}; check the URL of the registry or mirror"
    )]
    Redirect {
        /// The host.
        host: String,
        /// Where to.
        to: String,
        /// Why it is not followed.
        reason: &'static str,
    },
    /// It asks for authorization in a way that is not supported.
    #[error(
        "{host} asks for an authorization that is neither Basic nor Bearer, or does not say how; check the URL of the registry"
    )]
    Challenge {
        /// The host.
        host: String,
    },
    /// Its token server is not encrypted.
    #[error(
        "{host} asks to send credentials to `{realm}`, which is not https; they were not sent; correct the registry's `realm`"
    )]
    Realm {
        /// The host.
        host: String,
        /// The URL of the token server.
        realm: String,
    },
    /// The token server does not give a token.
    #[error(
        "the token server {server} of {host} gave no token: {reason}; try again, or ask who runs the registry"
    )]
    Token {
        /// The host.
        host: String,
        /// The token server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The manifest has another digest.
    #[error(
        "{host} sent a manifest with the digest {found} for {wanted}; nothing was used of it; do not trust this registry or mirror until you know why"
    )]
    ManifestDigest {
        /// The host.
        host: String,
        /// What was asked for, or what the registry said.
        wanted: String,
        /// The digest of what it sent.
        found: Digest,
    },
    /// The blob has another digest.
    #[error(
        "{host} sent a file with the digest {found}, but its manifest says {wanted}; nothing was used of it; do not trust this registry or mirror until you know why"
    )]
    BlobDigest {
        /// The host.
        host: String,
        /// What the manifest says.
        wanted: Digest,
        /// The digest of what it sent.
        found: Digest,
    },
    /// The blob has another size.
    #[error(
        "{host} sent {found} of a file for which its manifest says {declared} bytes; nothing was used of it; push it again, or do not trust this registry or mirror"
    )]
    BlobSize {
        /// The host.
        host: String,
        /// What the manifest says.
        declared: u64,
        /// How many were sent, in words.
        found: String,
    },
    /// An answer is too large.
    #[error("{host} sent {what} of more than {limit} bytes; nothing was used of it")]
    TooLarge {
        /// The host.
        host: String,
        /// What it sent.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The list of referrers is not one, or too long.
    #[error("{host} sent a list of referrers that {problem}; ask who runs the registry")]
    Referrers {
        /// The host.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Too many manifests refer to a plugin.
    #[error(
        "more than {limit} manifests refer to it; remove old signatures and attestations from the registry"
    )]
    ManyReferrers {
        /// The limit.
        limit: usize,
    },
    /// It accepts an upload, but does not say where.
    #[error(
        "{host} does not say where to send an upload; check whether it is a registry that accepts pushes"
    )]
    Upload {
        /// The host.
        host: String,
    },
}

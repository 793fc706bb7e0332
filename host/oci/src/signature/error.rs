//! Why signatures do not count.

use thiserror::Error;

use super::bundle::BundleError;
use crate::digest::Digest;

/// Why one signature, or what looks like one, does not count.
#[derive(Debug, Error)]
pub enum SignatureProblem {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It does not have the layout of a signature.
    #[error("is not a signature of this plugin: {0}")]
    Layout(&'static str),
    /// It is too large.
    #[error("has more than {limit} bytes, which no signature has")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// Its content is not a bundle that is read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// None of the keys signed it.
    #[error("is signed with none of the keys{}", claimed(.hint.as_ref()))]
    OtherKey {
        /// The fingerprint of its key, as it claims itself.
        hint: Option<Digest>,
    },
    /// What is signed is not a statement.
    #[error("is signed by {signer}, but is not a valid in-toto statement of one subject")]
    Statement {
        /// Who signed it.
        signer: String,
    },
    /// It signs something else.
    #[error(
        "is signed by {signer}, but for {found}; it was copied from another plugin or version, so find out who did"
    )]
    OtherDigest {
        /// Who signed it.
        signer: String,
        /// What is signed.
        found: Digest,
    },
    /// It is an attestation.
    #[error("is an attestation of the type {predicate}, which is not a signature")]
    Attestation {
        /// The type of the predicate.
        predicate: String,
    },
    /// The signer may not sign this plugin.
    #[error(
        "is signed by {signer}, who may not sign the plugin `{plugin}`; add the name to `plugins` of this signer only if it may (a built-in plugin's name has to be written out)"
    )]
    OtherPlugin {
        /// Who signed it.
        signer: String,
        /// The plugin.
        plugin: String,
    },
    /// The signer may not sign for this repository.
    #[error(
        "is signed by {signer}, whose plugins may not come from {repository}; use one of its `repositories`"
    )]
    OtherRepository {
        /// Who signed it.
        signer: String,
        /// Where the plugin is.
        repository: String,
    },
}

/// Why a plugin is not accepted.
#[derive(Debug, Error)]
pub enum SignatureError {
    /// There is no key to verify anything with.
    #[error(
        "nobody may sign plugins, so none is accepted from a registry; add `plugins.signers` to the configuration of the controller"
    )]
    NoSigners,
    /// Nothing refers to it that could be a signature.
    #[error(
        "{digest} is not signed; sign it with `cosign sign --yes --key cosign.key --signing-config none.json REPOSITORY@{digest}` of cosign 3"
    )]
    Unsigned {
        /// The plugin.
        digest: Digest,
    },
    /// It only has a signature of the old layout.
    #[error(
        "{digest} has a signature only under the tag {tag}, as cosign before version 3 makes them, which is not read; \
         sign it again with cosign 3, or with `cosign sign --new-bundle-format` of cosign 2.6"
    )]
    OldLayout {
        /// The plugin.
        digest: Digest,
        /// The tag.
        tag: String,
    },
    /// None of its signatures counts.
    #[error("no signature of {digest} counts: {listed}")]
    NoneCounts {
        /// The plugin.
        digest: Digest,
        /// The first ones with the reasons, and the number of the others.
        listed: String,
        /// How many there are.
        signatures: usize,
    },
    /// So much refers to it that no signature was found in it.
    #[error(
        "no signature of {digest} counts among the first {signatures}, which are {limit} bytes together; \
         someone floods the repository, so remove what does not belong there, or ask the vendor for the plugin in another repository"
    )]
    Flooded {
        /// The plugin.
        digest: Digest,
        /// How many were read.
        signatures: usize,
        /// The limit.
        limit: u64,
    },
    /// The file's name is not one that its signers may sign.
    #[error("{digest} {problem}")]
    Name {
        /// The plugin.
        digest: Digest,
        /// Why the signature does not count.
        #[source]
        problem: Box<SignatureProblem>,
    },
    /// A built-in plugin's name in a file that is not signed.
    #[error(
        "{digest} is the plugin `{plugin}`, which is built in and can be replaced only by a signed one; pass the name before it is pulled, so that its signature is looked for"
    )]
    UnsignedBuiltIn {
        /// The plugin.
        digest: Digest,
        /// The name.
        plugin: String,
    },
}

/// Returns what a bundle claims of its key.
fn claimed(fingerprint: Option<&Digest>) -> String {
    fingerprint.map_or_else(String::new, |fingerprint| {
        format!(" (it claims the key with the fingerprint {fingerprint})")
    })
}

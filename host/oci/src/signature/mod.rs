//! Signatures of plugins, which cosign makes and Trainyard verifies with keys.
//!
//! - `key` is a public key, and `signers` the operator's policy: who may sign which plugins.
//! - `bundle` reads a Sigstore bundle, and `statement` what is signed in it. Both are pure.
//! - `search` looks for a signature that counts among all that refers to a manifest.
//! - `error` says why a signature does not count, and why a plugin is not accepted.
//!
//! A signature is of the digest of a manifest, and the manifest has the digest of the file. So signatures are verified before the file is
//! fetched, and nothing of the file is used that does not have this digest.

mod bundle;
mod error;
mod key;
mod search;
mod signers;
mod statement;

pub use self::{
    bundle::BundleError,
    error::{SignatureError, SignatureProblem},
    key::{KeyError, PublicKey},
    signers::{
        MAX_SIGNERS, PLUGIN_NAMES, PluginName, REPOSITORIES, Requirement, SIGNER_NAME, Signer,
        Signers,
    },
};
pub(crate) use self::{
    search::{Signature, Wanted, attested, find, is_bundle, predicate},
    statement::SIGNATURE_PREDICATE,
};

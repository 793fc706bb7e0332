//! Signatures of plugins, which cosign makes and Trainyard verifies with keys.
//!
//! - `key` is a public key, and `signers` the operator's policy: who may sign which plugins.
//! - `bundle` reads a Sigstore bundle, and `statement` what is signed in it; `object` makes both strict.
//! - `error` says why a signature does not count, and why a plugin is not accepted.
//!
//! All of it is pure. A signature is of the digest of a manifest, and the manifest has the digest of the file. So signatures are verified before the file is
//! fetched, and nothing of the file is used that does not have this digest.

mod bundle;
mod error;
mod key;
mod object;
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
    bundle::{ANY_BUNDLE_TYPE, BUNDLE_TYPE, Envelope},
    statement::{SIGNATURE_PREDICATE, Statement},
};

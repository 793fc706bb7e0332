//! Plugins in OCI registries: push, pull, copy and inspect.
//!
//! - `reference` and `digest` name what is in a registry or in a folder.
//! - `artifact` is the layout of a plugin: the WebAssembly artifact of the CNCF. It is pure: it makes a manifest, and checks one.
//! - `registry` is the client of one repository: authorization, redirects, blobs, manifests and referrers. It sends its requests with a
//!   `transport`, which is HTTPS except in tests, and within `limits` of size and time. `budget` counts what is read of what others wrote.
//! - `layout` is a folder in the OCI image layout, and `index` a list of manifests in either. `store` is what a registry and a folder have in
//!   common, and `copy` writes a plugin to either, with what refers to it. `kept` is about
//!   what a folder keeps for later starts.
//! - `signature` says who may sign a plugin, and reads what was signed. `search` finds a signature that counts before a plugin is fetched.
//! - `client` does what users ask for, with their `credentials` and the mirrors of the operator's `registries`.
//! - `progress` says how far it is, and `error` why it failed. `regular_file` reads files that others could replace.
//!
//! Nothing that a registry says is trusted but what has the digest that was asked for.

#![allow(
    clippy::result_large_err,
    reason = "errors are few, and not on a hot path"
)]

mod artifact;
mod budget;
mod client;
mod copy;
mod credentials;
mod digest;
mod error;
mod index;
mod kept;
mod layout;
mod limits;
mod progress;
mod reference;
mod registries;
mod registry;
mod regular_file;
mod search;
mod signature;
mod store;
mod transport;

pub use artifact::{Artifact, ArtifactError, CONFIG_TYPE, LAYER_TYPE, MANIFEST_TYPE, Release};
pub use client::{Client, Inspected, Pulled, Pushed, Referrer, Signed, Verified};
pub use copy::Copied;
pub use credentials::{CredentialError, Credentials, Secret};
pub use digest::{Digest, DigestError};
pub use error::{LayoutError, OciError, Problem, RegistryError};
pub use kept::{discard_others, stored_file};
pub use limits::Limits;
pub use progress::{Progress, Step};
pub use reference::{LayoutReference, Location, Reference, ReferenceError};
pub use registries::Registries;
pub use signature::{
    BundleError, KeyError, MAX_SIGNERS, PLUGIN_NAMES, PluginName, PublicKey, REPOSITORIES,
    Requirement, SIGNER_NAME, SignatureError, SignatureProblem, Signer, Signers,
};
pub use transport::{Answer, AnswerBody, Https, HttpsError, Transport, TransportError, Upload};

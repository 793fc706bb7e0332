//! What operations return.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Signed;
use crate::{artifact::Blob, digest::Digest, error::Problem, search, store::Fetched};

/// A plugin that was pulled.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The file.
    pub file: Vec<u8>,
    /// The digest of the manifest, which pins the plugin in a reference.
    pub digest: Digest,
    /// The annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A plugin that was pushed.
#[derive(Clone, Debug, Serialize)]
pub struct Pushed {
    /// The digest of the manifest.
    pub digest: Digest,
}

/// A plugin with what refers to it.
#[derive(Debug)]
pub struct Inspected {
    /// The plugin.
    pub plugin: Pulled,
    /// Who signed it so that it counts, or why nothing does, if it was asked for. Nobody if it may be unsigned.
    pub signed: Option<Result<Signed, Problem>>,
    /// What refers to it, such as signatures.
    pub referrers: Vec<Referrer>,
    /// Whether more refers to it than is listed.
    pub has_more_referrers: bool,
}

/// What refers to a plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// What kind of artifact it is, such as `application/vnd.dev.sigstore.bundle.v0.3+json`.
    pub artifact_type: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The type of what it attests, such as `https://spdx.dev/Document`, if it is a bundle that says so. Only if a signer is named, the
    /// signature of it was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate_type: Option<String>,
    /// Who signed it, if it is a bundle of this plugin with a signature that is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// Why it does not count, if it is a bundle and keys were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Pulled {
    pub(super) fn of(plugin: Fetched) -> Self {
        Self {
            digest: plugin.manifest.digest.clone(),
            annotations: plugin.manifest.annotations(),
            file: plugin.file.into(),
        }
    }
}

impl Referrer {
    pub(super) fn of(blob: Blob) -> Self {
        Self {
            predicate_type: search::predicate(&blob).map(str::to_owned),
            signer: None,
            problem: None,
            artifact_type: blob.artifact_type.unwrap_or(blob.media_type),
            digest: blob.digest,
            annotations: blob.annotations,
        }
    }
}

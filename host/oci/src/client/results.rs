//! What operations return.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{artifact::Blob, digest::Digest, store::Fetched};

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
#[derive(Clone, Debug)]
pub struct Inspected {
    /// The plugin.
    pub plugin: Pulled,
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
            artifact_type: blob.artifact_type.unwrap_or(blob.media_type),
            digest: blob.digest,
            annotations: blob.annotations,
        }
    }
}

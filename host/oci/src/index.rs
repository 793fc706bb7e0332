//! Lists of manifests: the index of a folder, and what a registry lists as referrers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    artifact::{ArtifactError, Blob, INDEX_TYPE, MANIFEST_TYPE, Manifest, check_size, digest},
    limits::MANIFEST_BYTES,
};

/// The annotation with the name of a manifest. Only users give names: a manifest that brings one along does not keep it.
pub(crate) const NAME: &str = "org.opencontainers.image.ref.name";

/// A manifest in a list. What else a list says is not read, because it would need much more memory than it has bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) media_type: String,
    /// As written, because lists of others may have digests that Trainyard does not accept.
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Index {
    /// Some registries write `null` if there are none.
    manifests: Option<Vec<Listed>>,
}

impl Listed {
    /// Returns the entry of a manifest, without annotations.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        Self {
            media_type: MANIFEST_TYPE.to_owned(),
            digest: manifest.digest.to_string(),
            size: manifest.bytes.len() as u64,
            artifact_type: Some(manifest.artifact_type()),
            annotations: None,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        let annotations = self.annotations.as_ref()?;
        annotations.get(NAME).map(String::as_str)
    }

    /// Returns the descriptor.
    ///
    /// # Errors
    /// Its digest is not one that Trainyard accepts.
    pub(crate) fn blob(&self) -> Result<Blob, ArtifactError> {
        Ok(Blob {
            media_type: self.media_type.clone(),
            digest: digest(&self.digest)?,
            size: self.size,
            annotations: self.annotations.clone().unwrap_or_default(),
            artifact_type: self.artifact_type.clone(),
        })
    }
}

/// Reads a list.
pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<Vec<Listed>> {
    let index: Index = serde_json::from_slice(bytes)?;
    Ok(index.manifests.unwrap_or_default())
}

/// Reads the image manifests of a list, as [`manifests`] returns them. Everything else is dropped while the list is read, because it would need
/// much more memory than it has bytes.
pub(crate) fn parse_manifests(bytes: &[u8]) -> serde_json::Result<Vec<Blob>> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Option<Vec<Entry>>,
    }
    let index: Index = serde_json::from_slice(bytes)?;
    Ok(usable(index.manifests.unwrap_or_default()))
}

/// Writes a list.
///
/// # Errors
/// It is so large that it would not be read.
pub(crate) fn write(listed: &[Listed]) -> Result<Vec<u8>, ArtifactError> {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed});
    let bytes = index.to_string().into_bytes();
    check_size("list of manifests", bytes.len() as u64, MANIFEST_BYTES)?;
    Ok(bytes)
}

/// What a list says of one manifest; `None` if it is not an image manifest.
#[derive(Deserialize)]
#[serde(from = "Listed")]
struct Entry(Option<Result<Box<Blob>, Box<ArtifactError>>>);

impl From<Listed> for Entry {
    fn from(listed: Listed) -> Self {
        let blob = || listed.blob().map(Box::new).map_err(Box::new);
        Self((listed.media_type == MANIFEST_TYPE).then(blob))
    }
}

/// Returns the image manifests, each once. Those without a usable digest are left out with a warning.
pub(crate) fn manifests(listed: Vec<Listed>) -> impl Iterator<Item = Blob> {
    usable(listed.into_iter().map(Entry::from)).into_iter()
}

fn usable(entries: impl IntoIterator<Item = Entry>) -> Vec<Blob> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let mut problems = Vec::new();
    for entry in entries.into_iter().filter_map(|entry| entry.0) {
        match entry {
            Ok(blob) if seen.insert(blob.digest.clone()) => found.push(*blob),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    // One line, because the list can be long and anybody's.
    if let Some(problem) = problems.first() {
        let manifests = problems.len();
        tracing::warn!(manifests, %problem, "manifests in a list of referrers are left out; the problem is that of the first one");
    }
    found
}

//! Writing a plugin to a registry or folder, with what refers to it.

use serde::Serialize;

use crate::{
    artifact::{Blob, MANIFEST_TYPE},
    digest::Digest,
    error::{Problem, RegistryError},
    limits::Limits,
    progress::Progress,
    store::{Fetched, Store},
};

/// What was copied.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Copied {
    /// The digest of the plugin's manifest.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// How many manifests refer to it, such as signatures, and were copied, too.
    pub referrers: usize,
}

/// Writes a plugin. The name comes last, when everything is there, so that nobody finds a plugin without its signatures.
pub(crate) async fn write(
    plugin: &Fetched,
    from: Option<&Store<'_>>,
    to: &Store<'_>,
    name: &str,
    limits: &Limits,
    progress: &Progress,
) -> Result<Copied, Problem> {
    if let Store::Layout(layout) = to {
        layout.create()?;
    }
    progress.expect(plugin.layer.size);
    let config = Digest::of(&plugin.config);
    to.put(&config, plugin.config.clone(), &Progress::NONE)
        .await?;
    to.put(&plugin.layer.digest, plugin.file.clone(), progress)
        .await?;
    to.put_unnamed(&plugin.manifest).await?;
    let referrers = match from {
        Some(from) => copy_referrers(&plugin.manifest.digest, from, to, limits).await?,
        None => 0,
    };
    to.put_named(name, &plugin.manifest).await?;
    Ok(Copied {
        digest: plugin.manifest.digest.clone(),
        bytes: plugin.layer.size,
        referrers,
    })
}

/// Copies what refers to a manifest, and what refers to that, such as the signature of an SBOM. Returns how many there are.
async fn copy_referrers(
    digest: &Digest,
    from: &Store<'_>,
    to: &Store<'_>,
    limits: &Limits,
) -> Result<usize, Problem> {
    let mut found: Vec<Digest> = vec![digest.clone()];
    let mut next = 0;
    while let Some(subject) = found.get(next).cloned() {
        next += 1;
        for referrer in referrers(&subject, from, limits).await? {
            // A digest cannot refer to itself, but two lists may name the same one.
            if found.contains(&referrer.digest) {
                continue;
            }
            if found.len() > limits.referrers {
                return Err(too_many(limits).into());
            }
            copy_one(&referrer, from, to, limits).await?;
            found.push(referrer.digest);
        }
    }
    Ok(found.len() - 1)
}

/// Returns what refers to a manifest, up to the limit. What is not an image manifest is left out.
pub(crate) async fn referrers(
    digest: &Digest,
    store: &Store<'_>,
    limits: &Limits,
) -> Result<Vec<Blob>, Problem> {
    let mut found = store.referrers(digest).await?;
    found.retain(|blob| blob.media_type == MANIFEST_TYPE);
    if found.len() > limits.referrers {
        return Err(too_many(limits).into());
    }
    Ok(found)
}

fn too_many(limits: &Limits) -> RegistryError {
    RegistryError::ManyReferrers {
        limit: limits.referrers,
    }
}

async fn copy_one(
    referrer: &Blob,
    from: &Store<'_>,
    to: &Store<'_>,
    limits: &Limits,
) -> Result<(), Problem> {
    let manifest = from.manifest(referrer).await?;
    for blob in manifest.blobs()? {
        let content = from.limited(&blob, limits.blob_bytes).await?;
        to.put(&blob.digest, content, &Progress::NONE).await?;
    }
    to.put_unnamed(&manifest).await
}

//! What a registry and a folder have in common.

use bytes::Bytes;

use crate::{
    artifact::{Artifact, ArtifactError, Blob, Manifest, check_file, check_size},
    budget::Budget,
    digest::Digest,
    error::{LayoutError, Problem},
    layout::{Layout, Referrers},
    limits::Limits,
    progress::Progress,
    registry::{Pages, Repository},
};

/// A repository in a registry, or a folder.
#[derive(Debug)]
pub(crate) enum Store<'w> {
    Registry(Repository<'w>),
    Layout(Layout),
}

/// A plugin with everything that its manifest names, each of the size and digest that the manifest says.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) manifest: Manifest,
    pub(crate) config: Bytes,
    pub(crate) layer: Blob,
    pub(crate) file: Bytes,
}

impl Fetched {
    /// Returns an artifact that is pushed.
    pub(crate) fn of(artifact: &Artifact, limits: &Limits) -> Result<Self, ArtifactError> {
        let manifest = Manifest::parse(artifact.manifest.clone(), None)?;
        let (_, layer) = manifest.plugin(limits.file_bytes)?;
        Ok(Self {
            manifest,
            config: artifact.config.clone(),
            layer,
            file: artifact.file.clone(),
        })
    }
}

impl Store<'_> {
    /// Returns the plugin of a manifest.
    pub(crate) async fn plugin(
        &self,
        manifest: Manifest,
        limits: &Limits,
        progress: &Progress,
    ) -> Result<Fetched, Problem> {
        let (config, layer) = manifest.plugin(limits.file_bytes)?;
        progress.expect(layer.size);
        let config = self.content(&config, &Progress::NONE).await?;
        let file = self.content(&layer, progress).await?;
        check_file(&file)?;
        Ok(Fetched {
            manifest,
            config,
            layer,
            file,
        })
    }

    /// Returns a manifest that refers to another, and is not larger than the limit.
    pub(crate) async fn referrer(
        &self,
        blob: &Blob,
        limit: u64,
        budget: &Budget,
    ) -> Result<Manifest, Problem> {
        let read = budget.request();
        match self {
            Self::Registry(repository) => {
                let digest = blob.digest.as_str();
                repository.manifest(digest, limit, &read).await
            }
            Self::Layout(layout) => {
                let bytes = layout.content(&blob.digest, limit)?;
                read.advance(bytes.len());
                Ok(Manifest::parse(bytes, Some(&blob.media_type))?)
            }
        }
    }

    /// Returns content that is not larger than the limit.
    pub(crate) async fn limited(
        &self,
        blob: &Blob,
        limit: u64,
        budget: &Budget,
    ) -> Result<Bytes, Problem> {
        check_size("content", blob.size, limit)?;
        self.content(blob, &budget.request()).await
    }

    async fn content(&self, blob: &Blob, progress: &Progress) -> Result<Bytes, Problem> {
        match self {
            Self::Registry(repository) => Ok(repository.blob(blob, progress).await?.into()),
            Self::Layout(layout) => {
                let bytes = layout.content(&blob.digest, blob.size)?;
                if bytes.len() as u64 != blob.size {
                    return Err(LayoutError::Size {
                        path: layout.path(&blob.digest),
                        declared: blob.size,
                    }
                    .into());
                }
                progress.advance(bytes.len());
                Ok(bytes.into())
            }
        }
    }

    pub(crate) async fn put(
        &self,
        digest: &Digest,
        bytes: Bytes,
        progress: &Progress,
    ) -> Result<(), Problem> {
        match self {
            Self::Registry(repository) => repository.put_blob(digest, bytes, progress).await,
            Self::Layout(layout) => {
                progress.advance(bytes.len());
                Ok(layout.put(&bytes)?)
            }
        }
    }

    /// Writes a manifest that only its digest names.
    pub(crate) async fn put_unnamed(&self, manifest: &Manifest) -> Result<(), Problem> {
        match self {
            Self::Registry(repository) => {
                repository
                    .put_manifest(manifest.digest.as_str(), manifest)
                    .await
            }
            Self::Layout(layout) if manifest.subject().is_some() => {
                layout.put_manifest(manifest, None).await
            }
            // What has a name is listed under it alone.
            Self::Layout(layout) => Ok(layout.put(&manifest.bytes)?),
        }
    }

    /// Writes a manifest under a name: a tag in a registry, any name in a folder.
    pub(crate) async fn put_named(&self, name: &str, manifest: &Manifest) -> Result<(), Problem> {
        match self {
            Self::Registry(repository) => repository.put_manifest(name, manifest).await,
            Self::Layout(layout) => layout.put_manifest(manifest, Some(name)).await,
        }
    }

    /// Returns the descriptors of what refers to a manifest, and at most one more than so many.
    pub(crate) async fn referrers(
        &self,
        digest: &Digest,
        limit: usize,
        budget: &Budget,
    ) -> Result<Vec<Blob>, Problem> {
        let mut all = self.all_referrers(digest, budget)?;
        let mut found: Vec<Blob> = Vec::new();
        while found.len() <= limit
            && let Some(page) = all.next().await?
        {
            for blob in page {
                if found.len() <= limit && found.iter().all(|other| other.digest != blob.digest) {
                    found.push(blob);
                }
            }
        }
        Ok(found)
    }

    /// Returns all of what refers to a manifest.
    pub(crate) fn all_referrers(
        &self,
        digest: &Digest,
        budget: &Budget,
    ) -> Result<AllReferrers<'_>, Problem> {
        Ok(match self {
            Self::Registry(repository) => {
                AllReferrers::Registry(Pages::of(repository, digest, budget)?)
            }
            Self::Layout(layout) => AllReferrers::Layout(layout.referrers(digest)?),
        })
    }
}

/// All of what refers to a manifest, of which there is never much in memory.
pub(crate) enum AllReferrers<'s> {
    Registry(Pages<'s>),
    Layout(Referrers<'s>),
}

impl AllReferrers<'_> {
    /// Returns the next ones; `None` if there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Blob>>, Problem> {
        match self {
            Self::Registry(pages) => pages.next().await,
            Self::Layout(referrers) => {
                let found = referrers.next(AT_ONCE).await;
                Ok((!found.is_empty()).then_some(found))
            }
        }
    }
}

/// How many referrers in a folder are looked for at once.
const AT_ONCE: usize = 8;

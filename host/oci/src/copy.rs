//! Writing a plugin to a registry or folder, with what refers to it.

use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    artifact::{Blob, check_size},
    budget::Budget,
    digest::Digest,
    error::{Problem, RegistryError},
    limits::{Limits, MANIFEST_BYTES},
    progress::Progress,
    search::Signature,
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

/// What is wrong with a copy, and with which of its ends.
pub(crate) enum CopyError {
    Source(Problem),
    Target(Problem),
}

/// Writes a plugin that nothing refers to yet.
pub(crate) async fn push(
    plugin: &Fetched,
    to: &Store<'_>,
    name: &str,
    progress: &Progress,
) -> Result<(), Problem> {
    put_plugin(plugin, to, progress).await?;
    to.put_named(name, &plugin.manifest).await
}

/// What is copied of what refers to a plugin.
pub(crate) enum Referring<'c> {
    /// All.
    All,
    /// The signature that counts, and until a time everything else that can be copied within the limits, so that nobody can prevent a copy by
    /// adding more.
    Verified(Option<&'c Signature>, Instant),
    /// The signature that counts alone.
    Signature(Option<&'c Signature>),
}

/// Writes a plugin with what refers to it. The name comes last, when everything is there, so that nobody finds a plugin without its signatures.
pub(crate) async fn write(
    plugin: &Fetched,
    from: &Store<'_>,
    (to, name): (&Store<'_>, &str),
    referring: Referring<'_>,
    limits: &Limits,
    progress: &Progress,
) -> Result<Copied, CopyError> {
    put_plugin(plugin, to, progress)
        .await
        .map_err(CopyError::Target)?;
    let digest = &plugin.manifest.digest;
    let mut copy = ReferrersCopy {
        from,
        to,
        limits,
        budget: Budget::of(limits.referrer_bytes),
        found: vec![digest.clone()],
        needs_all: matches!(referring, Referring::All),
    };
    if let Referring::Verified(Some(signature), _) | Referring::Signature(Some(signature)) =
        referring
        && copy.one(digest, &signature.referrer).await?
    {
        copy.found.push(signature.referrer.digest.clone());
    }
    match referring {
        Referring::All => copy.all().await?,
        Referring::Verified(_, until) => match timeout_at(until, copy.all()).await {
            Ok(copied) => copied?,
            Err(_) => {
                tracing::warn!(%digest, "not everything that refers to a plugin is copied, because it takes too long");
            }
        },
        Referring::Signature(_) => {}
    }
    let referrers = copy.found.len() - 1;
    to.put_named(name, &plugin.manifest)
        .await
        .map_err(CopyError::Target)?;
    Ok(Copied {
        digest: digest.clone(),
        bytes: plugin.layer.size,
        referrers,
    })
}

async fn put_plugin(plugin: &Fetched, to: &Store<'_>, progress: &Progress) -> Result<(), Problem> {
    if let Store::Layout(layout) = to {
        layout.create().await?;
    }
    progress.expect(plugin.layer.size);
    let config = Digest::of(&plugin.config);
    to.put(&config, plugin.config.clone(), &Progress::NONE)
        .await?;
    to.put(&plugin.layer.digest, plugin.file.clone(), progress)
        .await?;
    to.put_unnamed(&plugin.manifest).await
}

/// A copy of what refers to a plugin.
struct ReferrersCopy<'c, 'w> {
    from: &'c Store<'w>,
    to: &'c Store<'w>,
    limits: &'c Limits,
    budget: Budget,
    /// The plugin, and what was copied.
    found: Vec<Digest>,
    /// Whether it is an error if something is not copied, and not only a warning.
    needs_all: bool,
}

impl ReferrersCopy<'_, '_> {
    /// Copies what refers to the plugin, and what refers to that, such as the signature of an SBOM.
    async fn all(&mut self) -> Result<(), CopyError> {
        let limit = self.limits.referrers;
        let mut next = 0;
        while let Some(subject) = self.found.get(next).cloned() {
            next += 1;
            let listed = self.from.referrers(&subject, limit, &self.budget).await;
            let listed = match listed {
                Ok(listed) => listed,
                Err(problem) => {
                    self.leave_out(&subject, CopyError::Source(problem))?;
                    continue;
                }
            };
            let has_more = listed.len() > limit;
            for referrer in listed {
                // A digest cannot refer to itself, but two lists may name the same one.
                if self.found.contains(&referrer.digest) {
                    continue;
                }
                if has_more || self.found.len() > limit {
                    let problem = RegistryError::ManyReferrers { limit }.into();
                    return self.leave_out(&subject, CopyError::Source(problem));
                }
                match self.one(&subject, &referrer).await {
                    Ok(true) => self.found.push(referrer.digest),
                    Ok(false) => {}
                    Err(error) => self.leave_out(&referrer.digest, error)?,
                }
            }
        }
        Ok(())
    }

    /// Goes on without something, if that is allowed.
    fn leave_out(&self, digest: &Digest, error: CopyError) -> Result<(), CopyError> {
        if self.needs_all {
            return Err(error);
        }
        let (CopyError::Source(problem) | CopyError::Target(problem)) = error;
        tracing::warn!(%digest, %problem, "not everything that refers to a plugin is copied");
        Ok(())
    }

    /// Copies a manifest with its content. Returns whether it refers to the subject, as the list says.
    async fn one(&mut self, subject: &Digest, referrer: &Blob) -> Result<bool, CopyError> {
        self.check_rest(1)?;
        let manifest = self.from.referrer(referrer, MANIFEST_BYTES, &self.budget);
        let manifest = manifest.await.map_err(CopyError::Source)?;
        let signed = manifest.subject();
        if signed.as_deref() != Some(subject.as_str()) {
            tracing::warn!(
                referrer = %referrer.digest, %subject, signed,
                "the source lists a manifest as a referrer that refers to another subject; it is not copied"
            );
            return Ok(false);
        }
        let blobs = manifest.blobs();
        for blob in blobs.map_err(|problem| CopyError::Source(problem.into()))? {
            self.check_rest(blob.size)?;
            let limit = self.limits.blob_bytes;
            let content = self.from.limited(&blob, limit, &self.budget).await;
            let content = content.map_err(CopyError::Source)?;
            let put = self.to.put(&blob.digest, content, &Progress::NONE).await;
            put.map_err(CopyError::Target)?;
        }
        let put = self.to.put_unnamed(&manifest).await;
        put.map_err(CopyError::Target)?;
        Ok(true)
    }

    /// Fails if fewer bytes may still be read.
    fn check_rest(&self, bytes: u64) -> Result<(), CopyError> {
        let limit = self.limits.referrer_bytes;
        let used = limit.saturating_sub(self.budget.rest());
        let checked = check_size("set of referrers", used.saturating_add(bytes), limit);
        checked.map_err(|problem| CopyError::Source(problem.into()))
    }
}

//! Pulling only what is signed.

use std::path::Path;

use super::{Client, Referrer, Verified};
use crate::{
    artifact::Blob,
    budget::Budget,
    copy::{self, CopyError, Referring},
    digest::Digest,
    error::{OciError, Problem},
    layout::Layout,
    progress::Progress,
    reference::{LayoutReference, Location, Reference},
    search::{self, Wanted},
    signature::{Requirement, Signers},
    store::Store,
};

impl Client {
    /// Pulls a plugin that is signed as required. The signatures and the file are of one manifest, which is asked for once.
    ///
    /// # Errors
    /// Why there is no plugin, or why none of its signatures counts. The file was not fetched then.
    pub async fn pull_verified(
        &self,
        location: &Location,
        requirement: &Requirement<'_>,
        progress: &Progress,
    ) -> Result<Verified, OciError> {
        self.limited(location, async {
            let repository = location.repository();
            let wanted = Wanted {
                requirement,
                repository: repository.as_deref(),
            };
            let found = self.fetch(location, Some(wanted), progress).await?;
            Ok(Verified::of(found, repository))
        })
        .await
    }

    /// Pulls a plugin as [`pull_verified`](Self::pull_verified) does, and stores it in a folder with the signature that counts, and nothing
    /// else that refers to it.
    ///
    /// # Errors
    /// As there, or the folder cannot be written.
    pub async fn store_verified(
        &self,
        reference: &Reference,
        folder: &Path,
        requirement: &Requirement<'_>,
        progress: &Progress,
    ) -> Result<Verified, OciError> {
        self.limited(reference, async {
            let repository = reference.full_repository();
            let wanted = Wanted {
                requirement,
                repository: Some(&repository),
            };
            let found = self.ask_registry(reference, Some(wanted), progress).await?;
            let name = format!("{repository}@{}", found.plugin.manifest.digest);
            let store = Store::Layout(Layout::new(folder));
            let signature = Referring::Signature(found.signature.as_ref());
            let copied = copy::write(
                &found.plugin,
                &found.store,
                (&store, &name),
                signature,
                &self.wire.limits,
                &Progress::NONE,
            );
            copied.await.map_err(|error| match error {
                CopyError::Source(problem) | CopyError::Target(problem) => problem,
            })?;
            Ok(Verified::of(found, Some(repository)))
        })
        .await
    }

    /// Returns a plugin that [`store_verified`](Self::store_verified) stored before, after its signatures were verified again, because a key
    /// may not count any more. No registry is asked: the folder counts as the repository of
    /// the reference. Whoever else can write to it can neither change the content of a digest nor forge a signature.
    ///
    /// # Errors
    /// The reference has no digest, the folder does not have the plugin, or none of its signatures counts.
    pub async fn pull_stored(
        &self,
        reference: &Reference,
        folder: &Path,
        requirement: &Requirement<'_>,
    ) -> Result<Verified, OciError> {
        self.limited(reference, async {
            let digest = reference.digest().ok_or(Problem::NotPinned)?;
            let repository = reference.full_repository();
            let wanted = Wanted {
                requirement,
                repository: Some(&repository),
            };
            let stored = Location::Layout(LayoutReference {
                folder: folder.to_owned(),
                name: Some(format!("{repository}@{digest}")),
                digest: Some(digest.clone()),
            });
            let found = self.fetch(&stored, Some(wanted), &Progress::NONE).await?;
            if let Store::Layout(layout) = &found.store {
                layout.mark_used(&found.plugin.layer.digest);
            }
            Ok(Verified::of(found, Some(repository)))
        })
        .await
    }
}

/// Returns what refers to a plugin, and who signed it, or why that does not count.
pub(super) async fn referrer(
    store: &Store<'_>,
    digest: &Digest,
    signers: &Signers,
    blob: Blob,
    limit: u64,
    budget: &Budget,
) -> Referrer {
    if !search::is_bundle(&blob) {
        return Referrer::of(blob);
    }
    let attested = search::attested(store, digest, signers, &blob, limit, budget).await;
    let referrer = Referrer::of(blob);
    match attested {
        Ok(attested) => Referrer {
            predicate_type: Some(attested.predicate),
            signer: Some(attested.signer),
            ..referrer
        },
        Err(refusal) => Referrer {
            problem: Some(refusal.reason()),
            ..referrer
        },
    }
}

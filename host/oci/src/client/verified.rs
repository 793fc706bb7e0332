//! Pulling only what is signed.

use std::path::Path;

use super::{Client, Found, Referrer};
use crate::{
    artifact::Blob,
    copy::{self, CopyError, Referring},
    digest::Digest,
    error::{OciError, Problem},
    layout::Layout,
    progress::Progress,
    reference::{LayoutReference, Location, Reference},
    search::{self, Signature, Wanted},
    signature::{PluginName, Requirement, SIGNATURE_PREDICATE, SignatureError, Signers},
    store::Store,
};

/// A plugin that was pulled, and is signed as required.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The file.
    pub file: Vec<u8>,
    /// What is signed, and by whom.
    pub signed: Signed,
}

/// Who signed a plugin so that it counts.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The digest of the manifest, which is signed.
    pub digest: Digest,
    /// The registry with the repository; `None` if it comes from a directory.
    pub repository: Option<String>,
    /// Who signed it so that it counts. Empty if it may be unsigned.
    pub signers: Vec<String>,
}

impl Signed {
    /// Returns who signed it; `None` if it may be unsigned.
    #[must_use]
    pub fn signer(&self) -> Option<&str> {
        self.signers.first().map(String::as_str)
    }

    /// Checks whether it may have a name that was not known when it was pulled, by the same signers. Keeps those who may sign it.
    ///
    /// # Errors
    /// None of those who signed it may sign a plugin of this name.
    pub fn check(
        &mut self,
        signers: &Signers,
        plugin: PluginName<'_>,
    ) -> Result<(), SignatureError> {
        let digest = self.digest.clone();
        let repository = self.repository.as_deref();
        if self.signers.is_empty() {
            return match plugin {
                PluginName::BuiltIn(plugin) => Err(SignatureError::UnsignedBuiltIn {
                    digest,
                    plugin: plugin.to_owned(),
                }),
                PluginName::Custom(_) | PluginName::Unknown => Ok(()),
            };
        }
        let mut refused = None;
        self.signers.retain(|signer| {
            let permitted = signers.permit(signer, plugin, repository);
            permitted.map_err(|problem| refused = Some(problem)).is_ok()
        });
        match refused.filter(|_| self.signers.is_empty()) {
            Some(problem) => Err(SignatureError::Name {
                digest,
                problem: Box::new(problem),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn of(
        digest: &Digest,
        repository: Option<String>,
        signatures: Vec<Signature>,
    ) -> Self {
        let signatures = signatures.into_iter();
        Self {
            digest: digest.clone(),
            repository,
            signers: signatures.map(|signature| signature.signer).collect(),
        }
    }
}

impl Verified {
    fn of(found: Found<'_>, repository: Option<String>) -> Self {
        Self {
            signed: Signed::of(&found.plugin.manifest.digest, repository, found.signatures),
            file: found.plugin.file.into(),
        }
    }
}

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

    /// Pulls a plugin as [`pull_verified`](Self::pull_verified) does, and stores it in a folder with the signatures that count, and nothing
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
            let signatures = Referring::Signatures(&found.signatures);
            let copied = copy::write(
                &found.plugin,
                &found.store,
                (&store, &name),
                signatures,
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
    /// may not count any more. No registry is asked. The folder has to be one that nobody else writes, because it counts as the repository of
    /// the reference.
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
    rest: &mut u64,
) -> Referrer {
    if !search::is_bundle(&blob) {
        return Referrer::of(blob);
    }
    let mut bytes = 0;
    let attested = search::attested(store, digest, signers, &blob, *rest, &mut bytes).await;
    *rest = rest.saturating_sub(bytes);
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

impl Referrer {
    /// Whether it is a signature, and not an attestation, as far as it says.
    #[must_use]
    pub fn is_signature(&self) -> bool {
        self.predicate_type.as_deref() == Some(SIGNATURE_PREDICATE)
    }
}

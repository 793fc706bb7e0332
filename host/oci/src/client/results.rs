//! What operations return.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Found;
use crate::{
    artifact::Blob,
    digest::Digest,
    error::Problem,
    search::{self, Signature},
    signature::{PluginName, SIGNATURE_PREDICATE, SignatureError, Signers},
    store::Fetched,
};

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
    /// Who signed it so that it counts: the first one who was found. Empty if it may be unsigned.
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
    /// Who signed it may not sign a plugin of this name. Somebody else who may can have signed it, too: pull it again with the name.
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
        signature: Option<Signature>,
    ) -> Self {
        let signatures = signature.into_iter();
        Self {
            digest: digest.clone(),
            repository,
            signers: signatures.map(|signature| signature.signer).collect(),
        }
    }
}

impl Verified {
    pub(super) fn of(found: Found<'_>, repository: Option<String>) -> Self {
        Self {
            signed: Signed::of(&found.plugin.manifest.digest, repository, found.signature),
            file: found.plugin.file.into(),
        }
    }
}

impl Referrer {
    /// Whether it is a signature, and not an attestation, as far as it says.
    #[must_use]
    pub fn is_signature(&self) -> bool {
        self.predicate_type.as_deref() == Some(SIGNATURE_PREDICATE)
    }
}

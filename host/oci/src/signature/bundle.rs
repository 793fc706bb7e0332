//! Sigstore bundles (version 0.3, JSON), as cosign writes them: a DSSE envelope, signed with a key.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::IgnoredAny};
use thiserror::Error;
use trainyard_text::clean;

use super::object::Object;
use crate::digest::Digest;

/// The media type of a bundle.
pub(crate) const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// How the media types of bundles of all versions begin.
pub(crate) const ANY_BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle";

/// The type of what an envelope has in it.
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";

/// Why a bundle cannot be used. What a bundle says is not repeated, except for media types.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BundleError {
    /// It is not JSON of a bundle.
    #[error("is not a valid Sigstore bundle: {0}")]
    Json(String),
    /// It is of another version.
    #[error(
        "is a bundle of the media type {found}, but only {BUNDLE_TYPE} is read; sign with cosign 3"
    )]
    Version {
        /// The media type.
        found: String,
    },
    /// It signs a file.
    #[error("signs a file, as `cosign sign-blob` does; sign the reference with `cosign sign`")]
    Blob,
    /// It is signed with a certificate.
    #[error(
        "is signed with a certificate (keyless), which Trainyard does not verify; sign with a key: `cosign sign --key`"
    )]
    Keyless,
    /// The envelope is not one.
    #[error("{0}")]
    Envelope(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Bundle {
    media_type: String,
    verification_material: Object<Material>,
    dsse_envelope: Option<Object<DsseEnvelope>>,
    message_signature: Option<IgnoredAny>,
}

/// Whose signature it is. Entries of transparency logs and timestamps prove when something was signed, which a key does not need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Material {
    public_key: Option<Object<PublicKeyHint>>,
    certificate: Option<IgnoredAny>,
    x509_certificate_chain: Option<IgnoredAny>,
    #[serde(rename = "tlogEntries")]
    _tlog_entries: Option<IgnoredAny>,
    #[serde(rename = "timestampVerificationData")]
    _timestamp_verification_data: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicKeyHint {
    hint: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DsseEnvelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Object<DsseSignature>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DsseSignature {
    sig: String,
    #[serde(rename = "keyid")]
    _keyid: Option<String>,
}

/// A statement with its signature, of which nothing is verified.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The statement, which is not parsed before its signature is verified.
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: Vec<u8>,
    /// The fingerprint of the key, as the bundle claims.
    pub(crate) hint: Option<Digest>,
}

impl Envelope {
    /// Reads a bundle.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BundleError> {
        let Object(bundle): Object<Bundle> = serde_json::from_slice(bytes).map_err(|error| {
            let at = format!("line {}, column {}", error.line(), error.column());
            BundleError::Json(match error.classify() {
                serde_json::error::Category::Data => clean(&error.to_string()),
                _ => format!("it is not JSON at {at}"),
            })
        })?;
        if bundle.media_type != BUNDLE_TYPE {
            let found = clean(&bundle.media_type);
            return Err(BundleError::Version { found });
        }
        let Object(material) = bundle.verification_material;
        if material.certificate.is_some() || material.x509_certificate_chain.is_some() {
            return Err(BundleError::Keyless);
        }
        let envelope = match (bundle.dsse_envelope, bundle.message_signature) {
            (Some(Object(envelope)), None) => envelope,
            (None, Some(_)) => return Err(BundleError::Blob),
            _ => return Err(BundleError::Envelope("has not exactly one DSSE envelope")),
        };
        if envelope.payload_type != STATEMENT_TYPE {
            return Err(BundleError::Envelope(
                "signs something else than an in-toto statement",
            ));
        }
        let [Object(signature)] = envelope.signatures.as_slice() else {
            return Err(BundleError::Envelope(
                "has not exactly one signature in its envelope",
            ));
        };
        let decoded = |text: &str| {
            let failure = |_| BundleError::Envelope("has an envelope that is not valid base64");
            STANDARD.decode(text).map_err(failure)
        };
        Ok(Self {
            payload: decoded(&envelope.payload)?,
            signature: decoded(&signature.sig)?,
            hint: material
                .public_key
                .and_then(|key| fingerprint(&key.0.hint?)),
        })
    }

    /// Returns what is signed: the pre-authentication encoding of DSSE.
    pub(crate) fn signed_bytes(&self) -> Vec<u8> {
        let (type_length, length) = (STATEMENT_TYPE.len(), self.payload.len());
        let head = format!("DSSEv1 {type_length} {STATEMENT_TYPE} {length} ");
        [head.as_bytes(), &self.payload].concat()
    }
}

/// Returns the fingerprint in a hint of cosign, which is in base64.
fn fingerprint(hint: &str) -> Option<Digest> {
    let bytes = STANDARD.decode(hint).ok()?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}").parse().ok()
}

//! Public keys of signers.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject as _};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::digest::Digest;

/// The most characters of a key in PEM. One of P-256 has 178.
pub(super) const PEM_CHARS: usize = 2048;

/// What stands before the point of a P-256 key in DER.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The bytes of an uncompressed point of P-256.
const P256_POINT: usize = 65;
/// How an uncompressed point begins.
const UNCOMPRESSED: u8 = 4;

/// Why a text is not a public key.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeyError {
    /// It is a secret.
    #[error(
        "is a private key; replace it with the public key, such as `cosign.pub`, and consider it compromised if others could read this file"
    )]
    Private,
    /// It is not one block of PEM.
    #[error(
        "is not one `PUBLIC KEY` in PEM; copy the whole file `cosign.pub`, with its first and last line"
    )]
    Pem,
    /// It has another algorithm.
    #[error("is not an ECDSA key of the curve P-256; make one with `cosign generate-key-pair`")]
    Algorithm,
}

/// The public key of a signer: ECDSA with P-256 and SHA-256, as cosign makes them.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey {
    /// The key with its algorithm, in DER.
    der: Vec<u8>,
}

impl PublicKey {
    /// Parses a key in PEM.
    ///
    /// # Errors
    /// It is not exactly one public key of a supported algorithm.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        if text.len() > PEM_CHARS {
            return Err(KeyError::Pem);
        }
        let blocks = text.matches("-----BEGIN ").count();
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes());
        let der = der.ok().filter(|_| blocks == 1).ok_or(KeyError::Pem)?;
        let point = der.strip_prefix(P256);
        let point = point.filter(|point| point.len() == P256_POINT);
        if point.and_then(|point| point.first()) != Some(&UNCOMPRESSED) {
            return Err(KeyError::Algorithm);
        }
        Ok(Self { der: der.to_vec() })
    }

    /// Returns the key in PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        const LINE: usize = 64;
        let mut text = "-----BEGIN PUBLIC KEY-----\n".to_owned();
        let encoded = STANDARD.encode(&self.der);
        for (at, char) in encoded.chars().enumerate() {
            if at > 0 && at % LINE == 0 {
                text.push('\n');
            }
            text.push(char);
        }
        text + "\n-----END PUBLIC KEY-----\n"
    }

    /// Returns the SHA-256 of the key in DER, which is `openssl pkey -pubin -in cosign.pub -outform DER | sha256sum`.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }

    /// Whether this key signed the message.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let point = self.der.strip_prefix(P256).unwrap_or_default();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
            .verify(message, signature)
            .is_ok()
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::from_pem(&text)
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_pem()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

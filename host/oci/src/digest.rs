//! Digests, which name content.

use std::{fmt, str::FromStr};

use serde::Serialize;
use thiserror::Error;
use trainyard_model::names::sha256_digest;

/// The digest of content: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Digest(String);

/// A text is not a digest that Trainyard accepts.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("is not `sha256:` with 64 hexadecimal digits in lower case")]
pub struct DigestError;

const ALGORITHM: &str = "sha256:";

impl Digest {
    /// Returns the digest of content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(sha256_digest(content))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(ALGORITHM).unwrap_or_default()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let hex = text.strip_prefix(ALGORITHM).ok_or(DigestError)?;
        let fits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() == 64 && hex.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError)
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

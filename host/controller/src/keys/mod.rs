//! Generates the keys of a Secret when the Secret is created.
//!
//! Only this module holds keys of TrainJobs, for the duration of one call to the API server. No type with a byte of a key implements `Debug`, `Display`,
//! `Clone` or `Serialize`, and all of them are overwritten when they are dropped. Copies within HTTP and TLS are not overwritten.

mod made;
mod object;
mod quoted;

use std::collections::BTreeMap;

use hyper::body::Bytes;
use made::KeyMaterial;
pub(crate) use quoted::KeyTexts;
use serde_json::Value;
use thiserror::Error;
use trainyard_model::{material::KeyText, object::SecretValue};

/// Why keys could not be generated.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The operating system provides no random bytes.
    #[error("the operating system provides no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// A key could not be encoded.
    #[error("a key could not be encoded as {}", .0.encoding())]
    Encoding(KeyText),
    /// The Secret could not be written as JSON.
    #[error("the Secret could not be written as JSON")]
    Json,
}

/// A Secret with its keys, as it is sent to the API server.
pub(crate) struct SecretWithKeys {
    /// Its JSON, whose memory is overwritten when its last owner drops it.
    pub(crate) json: Bytes,
    /// The texts that must not be quoted.
    pub(crate) texts: KeyTexts,
}

/// Generates the keys of a Secret, and serializes it with them.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn fill(
    secret: &Value,
    material: &BTreeMap<String, SecretValue>,
) -> Result<SecretWithKeys, KeyError> {
    let mut made = KeyMaterial::default();
    let mut texts = BTreeMap::new();
    for (key, value) in material {
        texts.insert(key.as_str(), made.text(value)?);
    }
    Ok(SecretWithKeys {
        json: object::json(secret, &texts)?,
        texts: made.into_texts(),
    })
}

#[cfg(test)]
mod tests;

//! The data of ConfigMaps and Secrets, and the rules for its keys.

use std::collections::BTreeMap;

use thiserror::Error;

/// The keys of a ConfigMap or Secret, each with a text `T` or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<T> {
    keys: BTreeMap<String, DataValue<T>>,
    /// `immutable`.
    pub immutable: bool,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataValue<T> {
    /// Text.
    Text(T),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Why a key cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DataError {
    /// The key is invalid.
    #[error("the key of a ConfigMap or Secret must be 1 to 253 letters, digits, `-`, `_` and `.`")]
    NoKey,
    /// The key has text.
    #[error("the key already has text")]
    HoldsText,
    /// The key has bytes.
    #[error("the key already has bytes")]
    HoldsBytes,
}

impl<T> Default for Data<T> {
    fn default() -> Self {
        Self {
            keys: BTreeMap::new(),
            immutable: false,
        }
    }
}

impl<T> Data<T> {
    /// The keys with their values, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &DataValue<T>)> {
        self.keys.iter().map(|(key, held)| (key.as_str(), held))
    }

    /// The text of a key, if it has one.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&T> {
        match self.keys.get(key)? {
            DataValue::Text(text) => Some(text),
            DataValue::Bytes(_) => None,
        }
    }

    /// Sets the bytes of a key.
    ///
    /// # Errors
    /// The key is invalid, or has text.
    pub fn set_bytes(&mut self, key: &str, bytes: &[u8]) -> Result<(), DataError> {
        match self.keys.get(key) {
            Some(DataValue::Text(_)) => return Err(DataError::HoldsText),
            None if !is_key(key) => return Err(DataError::NoKey),
            _ => {}
        }
        self.keys
            .insert(key.to_owned(), DataValue::Bytes(bytes.to_vec()));
        Ok(())
    }
}

impl<T: Default> Data<T> {
    /// Returns the text of a key for a write; it is empty at first.
    ///
    /// # Errors
    /// The key is invalid, or has bytes.
    pub fn text_mut(&mut self, key: &str) -> Result<&mut T, DataError> {
        if !is_key(key) {
            return Err(DataError::NoKey);
        }
        let empty = || DataValue::Text(T::default());
        match self.keys.entry(key.to_owned()).or_insert_with(empty) {
            DataValue::Text(text) => Ok(text),
            DataValue::Bytes(_) => Err(DataError::HoldsBytes),
        }
    }
}

fn is_key(key: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    // As a file of a volume, the name would be a directory.
    !key.is_empty()
        && key.len() <= 253
        && key.bytes().all(is_allowed)
        && !key.starts_with("..")
        && key != "."
}

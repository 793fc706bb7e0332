//! Detects messages that quote a key.

use std::collections::HashSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use zeroize::Zeroizing;

/// The number of characters of a key that a message may have by chance.
const BY_CHANCE: usize = 12;

/// The texts of the key material of a Secret, each once. Other texts of the Secret are not included, because a message may name the
/// TrainJob.
pub(crate) struct KeyTexts(Vec<Zeroizing<String>>);

impl KeyTexts {
    /// Returns the key texts.
    pub(crate) fn new(texts: impl IntoIterator<Item = Zeroizing<String>>) -> Self {
        Self(texts.into_iter().collect())
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a message quotes a part of a key, as text, in base64, or as a list of numbers, as Go and Rust print bytes. The memory that this
    /// takes is bounded by the plugin's limits.
    pub(crate) fn are_quoted_in(&self, message: &str) -> bool {
        let texts = self.0.iter();
        let encoded: Vec<_> = texts
            .flat_map(|text| (0..3).map(|at| encoded(text, at)))
            .collect();
        let parts: HashSet<&[u8]> = (self.0.iter().chain(&encoded))
            .flat_map(|text| text.as_bytes().windows(BY_CHANCE))
            .collect();
        let is_quoted_in = |bytes: &[u8]| {
            let mut windows = bytes.windows(BY_CHANCE);
            windows.any(|window| parts.contains(window))
        };
        is_quoted_in(message.as_bytes()) || is_quoted_in(&listed(message))
    }
}

/// Returns the bytes that a message has as decimal numbers, with any separators.
fn listed(message: &str) -> Zeroizing<Vec<u8>> {
    let numbers = message.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|digits| !digits.is_empty());
    let mut bytes = Zeroizing::new(Vec::with_capacity(message.len()));
    bytes.extend(numbers.map(|digits| digits.parse::<u8>().unwrap_or_default()));
    bytes
}

/// Returns the base64 characters that encode only the text, if it follows `before` bytes, or a multiple of three more, in the encoded
/// value.
fn encoded(text: &str, before: usize) -> Zeroizing<String> {
    let length = before + text.len();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    bytes.resize(before, 0);
    bytes.extend_from_slice(text.as_bytes());
    let whole = Zeroizing::new(BASE64_STANDARD.encode(&*bytes));
    // A character holds 6 bits.
    let own = (before * 8).div_ceil(6)..length * 8 / 6;
    Zeroizing::new(whole.get(own).unwrap_or_default().to_owned())
}

//! The content of Secrets.

use thiserror::Error;

use crate::material::SecretText;

/// The text of a Secret's key: plain text and key material, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretValue {
    parts: Vec<Part>,
    shown: String,
}

/// A part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Plain text of the plugin.
    Plain(String),
    /// Key material, generated when the Secret is created.
    Material(SecretText),
}

impl SecretValue {
    /// Appends plain text.
    pub fn append(&mut self, text: &str) {
        self.shown.push_str(text);
        match self.parts.last_mut() {
            Some(Part::Plain(last)) => last.push_str(text),
            _ => self.parts.push(Part::Plain(text.to_owned())),
        }
    }

    /// Appends key material.
    pub fn append_material(&mut self, text: SecretText) {
        self.shown.push_str(&text.to_string());
        self.parts.push(Part::Material(text));
    }

    /// The parts, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether it contains key material.
    #[must_use]
    pub fn has_material(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, Part::Material(_)))
    }

    /// The text with a placeholder for each piece of key material.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// The type of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretType(String);

/// Why a plugin cannot emit a Secret of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretTypeError {
    /// It is not a valid type.
    #[error(
        "the type of a Secret must be 1 to 253 letters, digits, `.`, `-`, `_` and `/`, such as `kubernetes.io/ssh-auth`"
    )]
    Malformed,
    /// It holds a token.
    #[error(
        "plugins cannot emit Secrets of this type, because it holds a token for a ServiceAccount or for joining a cluster"
    )]
    Token,
}

/// Types of Secrets that Kubernetes fills with a token or accepts as one.
const TOKENS: [&str; 2] = [
    "kubernetes.io/service-account-token",
    "bootstrap.kubernetes.io/token",
];

impl SecretType {
    /// Returns the type with that name.
    ///
    /// # Errors
    /// Why plugins cannot emit Secrets of it.
    pub fn new(text: &str) -> Result<Self, SecretTypeError> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"./-_".contains(&b);
        if text.is_empty() || text.len() > 253 || !text.bytes().all(is_allowed) {
            return Err(SecretTypeError::Malformed);
        }
        if TOKENS.contains(&text) {
            return Err(SecretTypeError::Token);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name, such as `Opaque`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SecretType {
    fn default() -> Self {
        Self("Opaque".to_owned())
    }
}

//! What Secrets hold.

use thiserror::Error;

use crate::material::SecretText;

/// The text of a Secret's key: texts of a plugin and key material, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretValue {
    parts: Vec<Part>,
    shown: String,
}

/// A part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A plugin's own text.
    Plain(String),
    /// Text that is made when the Secret is created.
    Material(SecretText),
}

impl SecretValue {
    /// Appends a plugin's own text.
    pub fn append(&mut self, text: &str) {
        self.shown.push_str(text);
        match self.parts.last_mut() {
            Some(Part::Plain(last)) => last.push_str(text),
            _ => self.parts.push(Part::Plain(text.to_owned())),
        }
    }

    /// Appends text that is made when the Secret is created.
    pub fn append_material(&mut self, text: SecretText) {
        self.shown.push_str(&text.to_string());
        self.parts.push(Part::Material(text));
    }

    /// The parts, in their order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether there is key material in it.
    #[must_use]
    pub fn has_material(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, Part::Material(_)))
    }

    /// The text as it is shown: with a placeholder for each piece of key material.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// The type of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretType(String);

/// Why a text is not the type of a Secret that a plugin can emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretTypeError {
    /// It is not a type at all.
    #[error(
        "the type of a Secret must be 1 to 253 letters, digits, `.`, `-`, `_` and `/`, such as `kubernetes.io/ssh-auth`"
    )]
    Malformed,
    /// Secrets of it carry power.
    #[error(
        "a Secret of this type holds a token for a ServiceAccount or for joining a cluster; no plugin may emit it"
    )]
    Token,
}

/// Types of Secrets that Kubernetes fills with a token, or takes for one.
const TOKENS: [&str; 2] = [
    "kubernetes.io/service-account-token",
    "bootstrap.kubernetes.io/token",
];

impl SecretType {
    /// The type of that spelling.
    ///
    /// # Errors
    /// Why no plugin emits Secrets of it.
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

    /// As `Opaque`.
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

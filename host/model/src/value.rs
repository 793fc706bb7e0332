//! Values of the contract, and what the host does with them.

pub use crate::contract::records::*;
use crate::text::clean;

impl Failure {
    /// Returns a failure with the plugin's texts cleaned.
    #[must_use]
    pub fn cleaned(message: &str, field: Option<&str>) -> Self {
        Self {
            message: clean(message),
            field: field.map(clean),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

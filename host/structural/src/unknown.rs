//! Fields that are pruned, as an API server reports them.

use std::fmt;

use trainyard_text::FieldPath;

/// A field that is not in the schema. An API server prunes it, or refuses the object if the request asks for strict validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The field.
    pub path: FieldPath,
    /// The field of the schema with the most similar name.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field \"{}\"", self.path)?;
        match &self.suggestion {
            Some(name) => write!(f, ", did you mean {name:?}?"),
            None => Ok(()),
        }
    }
}

//! Fields that are dropped, as the author of the object should hear of them.

use std::fmt;
use trainyard_text::FieldPath;

/// A field that the schema does not know. An API server drops it, or refuses the object where it was asked to be strict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Where it stood.
    pub path: FieldPath,
    /// The known field of the same object that is spelled almost so.
    pub suggestion: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field \"{}\"", self.path)?;
        match &self.suggestion {
            Some(name) => write!(f, ", did you mean {name:?}?"),
            None => Ok(()),
        }
    }
}

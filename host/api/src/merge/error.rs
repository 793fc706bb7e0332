use thiserror::Error;

use crate::FieldPath;

/// Whose item it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of what is patched.
    Base,
    /// Of the patch.
    Patch,
}

/// An item of a list that merges by a key, and can't.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: must be an object with `{key}`, by which the items of this list are told apart")]
pub struct MergeError {
    /// Whose item.
    pub side: Side,
    /// The item, below the JobSet's spec.
    pub path: FieldPath,
    /// The key that it needs.
    pub key: &'static str,
}

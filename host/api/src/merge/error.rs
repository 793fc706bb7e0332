use thiserror::Error;

use crate::FieldPath;

/// The side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Base,
    Patch,
}

/// An item of a keyed list that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: must be an object with `{key}`, which identifies the items of this list")]
pub struct MergeError {
    /// The side with the item.
    pub side: Side,
    /// The path of the item, below the JobSet's spec.
    pub path: FieldPath,
    /// The key that it must have.
    pub key: &'static str,
}

//! Parts of a node that few nodes have.

use std::ops::Deref;

/// A part that takes memory only if it is present. A schema of Kubernetes' pods has more than a thousand nodes, most of which are plain
/// strings, numbers and lists.
#[derive(Debug)]
pub(crate) struct Sparse<T>(Option<Box<T>>);

/// A part that can be absent.
pub(crate) trait Absent: 'static {
    /// The content of an absent part.
    fn absent() -> &'static Self;
}

impl<T> Sparse<T> {
    pub(crate) fn new(part: T) -> Self {
        Self(Some(Box::new(part)))
    }
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Absent> Deref for Sparse<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(part) => part,
            None => T::absent(),
        }
    }
}

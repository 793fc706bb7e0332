//! What stores need to know of objects and their keys.

use std::sync::Arc;

/// A slim copy of an object.
pub trait State {
    /// Its `metadata.resourceVersion`, which is a number in the order of writes: by contract since Kubernetes 1.35, and in practice before.
    fn version(&self) -> u64;

    /// The bytes of text that are held of it, which count against the limit of its namespace.
    fn text_bytes(&self) -> usize {
        0
    }

    /// Replaces its text by the reason why it is not held.
    fn leave_text_out(&mut self, _why: String) {}
}

/// The key of an object.
pub trait Namespaced {
    /// The namespace; `None` if the object is cluster-scoped.
    fn namespace(&self) -> Option<&Arc<str>>;
}

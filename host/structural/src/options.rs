//! The properties of a kind that its schema does not have.

/// The properties that a CRD defines for a kind in addition to its schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The scope of the kind.
    pub scope: Scope,
    /// Whether the kind has the status subresource. If so, requests for the object itself do not change its status.
    pub status_subresource: bool,
}

/// The scope of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in a namespace. An object without one is valid, since the request has it.
    #[default]
    Namespaced,
    /// Objects are in no namespace.
    Cluster,
}

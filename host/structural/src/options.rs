//! What a CRD defines beside the schema.

/// What a CRD defines for a kind beside its schema.
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

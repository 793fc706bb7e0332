//! What an API server knows of an object beside its schema.

/// What an API server knows of a kind beside its schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether objects of the kind live in a namespace.
    pub scope: Scope,
    /// Whether the kind has the status subresource: a status is then neither created nor changed with the object itself.
    pub status_subresource: bool,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace. One that is not named yet is no fault: the request names it.
    #[default]
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

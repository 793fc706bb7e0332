//! What is wrong with a document.

use thiserror::Error;
use trainyard_structural::CompileError;

/// An error of a schema document.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// A placeholder for a type that is not in the pinned document of Kubernetes.
    #[error(
        "{place}: Kubernetes' document has no type `{name}`; see host/schema/documents/kubernetes for its types"
    )]
    UnknownType {
        /// The placeholder, as a JSON pointer into the document.
        place: String,
        /// The name of the type.
        name: String,
    },
    /// A placeholder for a document that does not exist.
    #[error("{place}: there is no document `{name}` in host/schema/documents")]
    UnknownDocument {
        /// The placeholder.
        place: String,
        /// The name of the document.
        name: String,
    },
    /// A document that is not valid YAML.
    #[error("the document `{name}`: {problem}")]
    Yaml {
        /// The document.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The schema of a document does not compile.
    #[error("the document `{name}`: {problem}")]
    Schema {
        /// The document.
        name: String,
        /// What is wrong with it.
        problem: CompileError,
    },
    /// A placeholder whose value is not a name.
    #[error(
        "{place}: the value of `$kubernetes` or `$document` must be a name, and only one of the two is allowed"
    )]
    NoName {
        /// The placeholder.
        place: String,
    },
    /// A keyword of Kubernetes' document that is not supported.
    #[error("{name}: the keyword `{keyword}` of Kubernetes' document is not supported")]
    UnknownKeyword {
        /// The type.
        name: String,
        keyword: String,
    },
    /// The generated file is invalid.
    #[error("host/schema/documents/compact.json is invalid: {0}")]
    Generated(String),
    /// The pinned document is invalid.
    #[error("Kubernetes' document is invalid: {0}")]
    Pinned(String),
}

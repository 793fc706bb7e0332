//! Errors of configuration files.

use thiserror::Error;
use trainyard_api::{Location, error::InputProblem};

/// One error of a configuration file, with its file, line and field.
#[derive(Debug, Error)]
#[error("{location}: {problem}")]
pub struct ConfigError {
    /// The file, with the field and its line as far as they are known.
    pub location: Location,
    /// The error.
    pub problem: ConfigProblem,
}

/// The kinds of errors of a configuration file.
#[derive(Debug, Error)]
pub enum ConfigProblem {
    /// The file cannot be read, or is not YAML.
    #[error(transparent)]
    Input(#[from] InputProblem),
    /// The file has no document.
    #[error("is empty; it must begin with {expected}")]
    Empty {
        /// The first lines of a valid file.
        expected: String,
    },
    /// The file has several documents.
    #[error("contains {documents} YAML documents; merge them into one")]
    Documents {
        /// The number of documents.
        documents: usize,
    },
    /// The file is of another kind.
    #[error("apiVersion `{api_version}` with kind `{kind}` is not supported; use {expected}")]
    Kind {
        api_version: String,
        kind: String,
        /// The first lines of a valid file.
        expected: String,
    },
    /// A field has an error.
    #[error("{0}")]
    Field(String),
    /// The file has more errors than are reported.
    #[error("{errors} more errors are not printed; correct those above first")]
    Omitted {
        /// The number of errors that are not reported.
        errors: usize,
    },
}

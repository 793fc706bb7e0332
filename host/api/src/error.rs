//! Errors in the input of a run.

use std::io;

use thiserror::Error;

use crate::{
    fields::FieldProblem,
    location::{Located, Location},
    yaml,
};

/// An error in the input.
#[derive(Debug, Error)]
#[error("{location}: {problem}")]
pub struct InputError {
    pub location: Location,
    /// What is wrong.
    pub problem: InputProblem,
}

impl From<InputError> for Located {
    fn from(error: InputError) -> Self {
        Self {
            location: error.location,
            message: error.problem.to_string(),
        }
    }
}

/// What can be wrong with the input.
#[derive(Debug, Error)]
pub enum InputProblem {
    /// The file or directory cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// A directory, FIFO, socket or device.
    #[error("is not a regular file; pass a file, or a link to one")]
    NotAFile,
    /// There are more errors than are listed.
    #[error("there are more errors, which are not listed; correct those above first")]
    More,
    /// The file is too large.
    #[error("is larger than {limit} bytes, the maximum for this file; split or shorten it")]
    TooLarge {
        /// The maximum in bytes.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("is not UTF-8 text{}; save it as UTF-8", if *.utf16 { " (it starts like UTF-16)" } else { "" })]
    NotUtf8 {
        /// Whether it begins with the byte order mark of UTF-16.
        utf16: bool,
    },
    /// A directory contains no file to read.
    #[error("contains no .yaml, .yml or .json file; subdirectories are not read")]
    EmptyFolder,
    /// `-` was passed more than once.
    #[error("can be read only once; pass `-f -` once")]
    StandardInputTwice,
    /// A document is neither YAML nor JSON.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.kind)]
    Yaml(yaml::Error),
    /// The objects of the run use too much memory.
    #[error("{0}")]
    Memory(yaml::ErrorKind),
    /// A document is not a Kubernetes object.
    #[error("is not a Kubernetes object, but {0}; an object has apiVersion, kind and metadata")]
    NotAnObject(String),
    /// A Kustomization that was not found in a directory.
    #[error(
        "is a Kustomization, which only lists other files; pass its directory, or pipe the output of `kubectl kustomize` into `-f -`"
    )]
    Kustomization,
    /// An object that kubectl takes for a list.
    #[error(
        "has `items`, although its kind does not end in List: kubectl ignores everything else in it and applies the items; write them as documents of their own"
    )]
    Items,
    /// A field of an object is wrong.
    #[error("{0}")]
    Field(FieldProblem),
    /// A field that should be a string has this text without quotes. The value does not tell how it is meant: for YAML, `1.10` is 1.1.
    #[error("{0}: \"{1}\"")]
    Unquoted(FieldProblem, String),
}

impl InputProblem {
    /// Returns the line in the file, if the problem has one.
    pub const fn line(&self) -> Option<usize> {
        match self {
            Self::Yaml(error) => Some(error.line),
            _ => None,
        }
    }
}

/// All errors in the input of a run, in the order of the input. Never empty.
#[derive(Debug, Error)]
#[error("{}", lines(.0))]
pub struct InputErrors(pub Vec<InputError>);

fn lines(errors: &[InputError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl IntoIterator for InputErrors {
    type Item = InputError;
    type IntoIter = std::vec::IntoIter<InputError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

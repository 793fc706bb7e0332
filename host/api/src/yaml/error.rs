//! What can be wrong with a text.

use thiserror::Error;

/// What is wrong with one document, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("document {document}, line {line}, column {column}: {kind}")]
pub struct Error {
    /// The document's place in its text, from 1.
    pub document: usize,
    /// The line in the text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// The text is no YAML.
    #[error("this is not YAML: {0}")]
    Syntax(String),
    /// The text starts as JSON does, and is none.
    #[error("this is not JSON: {0}")]
    Json(String),
    /// A mapping has a key twice.
    #[error("the key \"{0}\" is here a second time: remove one of the two")]
    DuplicateKey(String),
    /// A key that JSON can't express.
    #[error("a key must be text, this one is {0}: quote it")]
    Key(&'static str),
    /// An alias of an anchor that is not in this document.
    #[error("this alias names no anchor in the same document")]
    UnknownAlias,
    /// An alias inside of the very value that it stands for.
    #[error("this alias stands for a value that it is itself a part of")]
    AliasInsideItself,
    /// Aliases make the input too large.
    #[error(
        "the aliases of this input, up to here, expand to more than {limit} bytes of memory; write the values out, or split the input"
    )]
    TooManyAliases {
        /// The bound, [`super::MAX_ALIAS_BYTES`].
        limit: usize,
    },
    /// The values of the input take too much memory.
    #[error(
        "the values of this input, up to here, take more than {limit} bytes of memory; split the input, and give its parts one after the other"
    )]
    TooManyValues {
        /// The bound, [`super::MAX_VALUE_BYTES`].
        limit: usize,
    },
    /// Lists and mappings nest too deep.
    #[error("lists and mappings nest more than {limit} deep")]
    TooDeep {
        /// The bound, [`super::MAX_DEPTH`].
        limit: usize,
    },
    /// A number that JSON can't express.
    #[error("{0} is a number that JSON can't express: quote it if it is meant as text")]
    NotFinite(String),
    /// A tag that does not fit its value.
    #[error("\"{text}\" is no value for the tag !!{tag}")]
    Tag {
        /// The tag without its `!!`.
        tag: String,
        /// The text as written.
        text: String,
    },
    /// The value of a merge key is neither a mapping nor a list of mappings.
    #[error("the value of << must be a mapping or a list of mappings")]
    Merge,
}

impl ErrorKind {
    /// Whether nothing more is read: every further document would have the same error.
    pub(crate) const fn ends_reading(&self) -> bool {
        matches!(self, Self::TooManyValues { .. })
    }
}

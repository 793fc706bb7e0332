//! Errors of YAML and JSON.

use thiserror::Error;

/// An error of a document, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("document {document}, line {line}, column {column}: {kind}")]
pub struct Error {
    /// The number of the document in its text, from 1.
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
    /// The text is not YAML.
    #[error("invalid YAML: {0}")]
    Syntax(String),
    /// A character that ends a line for some readers of YAML only, so that they read different values.
    #[error(
        "the character U+{:04X} does not end a line for all readers of YAML, so kubectl may read other values; write a line feed or a space instead, or \"\\u{:04x}\" in double quotes",
        u32::from(*.0),
        u32::from(*.0)
    )]
    LineBreak(char),
    /// A document that begins after `...`, or beside a `---`.
    #[error(
        "kubectl ignores this document, because no line with `---` alone separates it from the one before; write one above it"
    )]
    NotSeparated,
    /// The text starts like JSON, but is not JSON.
    #[error("invalid JSON: {0}")]
    Json(String),
    /// A duplicate key of a mapping.
    #[error("the key \"{0}\" is a duplicate; remove one of the two")]
    DuplicateKey(String),
    /// A key that is not possible in JSON.
    #[error("a key must be a string, but this one is {0}; quote it")]
    Key(&'static str),
    /// An anchor whose name kubectl ends earlier, and takes the rest for a value.
    #[error(
        "kubectl may read a part of this anchor's name as a value; use only letters from A to Z, digits, - and _ in it"
    )]
    AnchorName,
    /// An alias of an anchor that is not in this document.
    #[error("this alias refers to an anchor that is not in this document")]
    UnknownAlias,
    /// An alias inside of the value to which it refers.
    #[error("this alias is inside of the value to which it refers")]
    AliasInsideItself,
    /// The aliases of the input expand to too much memory.
    #[error(
        "the aliases of the input expand to more than {limit} bytes of memory; write the values out, or split the input"
    )]
    TooManyAliases {
        /// The limit, [`super::MAX_ALIAS_BYTES`].
        limit: usize,
    },
    /// The values of the input take too much memory.
    #[error(
        "the values of the input take more than {limit} bytes of memory; split the input and process its parts separately"
    )]
    TooManyValues {
        /// The limit, [`super::MAX_VALUE_BYTES`].
        limit: usize,
    },
    /// Lists and mappings are nested too deep.
    #[error("lists and mappings are nested more than {limit} levels deep")]
    TooDeep {
        /// The limit, [`super::MAX_DEPTH`].
        limit: usize,
    },
    /// A number that is not possible in JSON.
    #[error("the number {0} is not a valid JSON number; quote it if it is a string")]
    NotFinite(String),
    /// An integer that an API server stores as a float with other digits.
    #[error(
        "an API server would round the number {0}, because it is above 9223372036854775807; write a smaller one, or quote it if it is a string"
    )]
    Rounded(String),
    /// A number of JSON that is larger than a float can be. YAML of Kubernetes takes it for a string, but its JSON does not.
    #[error(
        "the number is too large, so an API server refuses it; write a smaller one, or quote it if it is a string"
    )]
    TooLarge,
    /// A tag that does not fit its value.
    #[error("\"{text}\" is not a valid value for the tag !!{tag}")]
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
    /// Returns whether parsing stops, because every further document would have the same error.
    pub(crate) const fn ends_reading(&self) -> bool {
        matches!(self, Self::TooManyValues { .. })
    }

    /// Returns whether a text with this error as JSON is not read as YAML either, which would find another value in it.
    pub(super) const fn is_of_json_only(&self) -> bool {
        matches!(self, Self::TooManyValues { .. } | Self::TooLarge)
    }
}

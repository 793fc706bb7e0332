//! Why a schema is refused.

use thiserror::Error;

use super::limits::{Exhausted, MAX_LEVELS, MAX_SCHEMA_LEVELS};

/// The supported keywords, in the order of the documentation.
pub const KEYWORDS: [&str; 29] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
    "description",
];

/// The keywords that check nothing.
pub const ANNOTATIONS: [&str; 8] = [
    "$comment",
    "$schema",
    "deprecated",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];

/// Why a schema is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not a schema that Trainyard supports: {}{problem}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct SchemaError {
    /// RFC 6901 pointer into the schema.
    pub pointer: String,
    /// What is wrong there.
    pub problem: SchemaProblem,
}

/// A problem at one location of a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SchemaProblem {
    /// Neither an object nor a boolean.
    #[error("a schema must be an object, true or false")]
    NotASchema,
    /// A keyword that is not supported.
    #[error("unsupported keyword `{keyword}`; supported keywords are {}", KEYWORDS.join(", "))]
    Keyword {
        /// The keyword.
        keyword: String,
    },
    /// The value of a keyword has the wrong type.
    #[error("`{keyword}` must be {expected}")]
    Form {
        /// The keyword.
        keyword: &'static str,
        /// The type that it must have.
        expected: &'static str,
    },
    /// A pattern that does not compile, or exceeds the limit when compiled.
    #[error("`pattern` is not supported: {0}")]
    Pattern(String),
    /// A reference that is not to a definition.
    #[error(
        "`$ref` must be `#/$defs/NAME` or `#/definitions/NAME` of a definition at the top level of the schema; found `{0}`"
    )]
    Reference(String),
    /// A limit is exceeded.
    #[error("has more than {allowed} {what}")]
    TooMany {
        /// What is limited.
        what: &'static str,
        /// The limit.
        allowed: u64,
    },
    /// Defaults that exceed the limit even for an empty configuration.
    #[error("an empty configuration {0}")]
    Defaults(Exhausted),
    /// Schemas that are nested too deeply, or refer to themselves.
    #[error("schemas nest deeper than {MAX_SCHEMA_LEVELS} levels, or one refers to itself")]
    Levels,
    /// A default that is nested too deeply.
    #[error("the default nests deeper than {MAX_LEVELS} levels")]
    DeepDefault,
}

//! Why a schema is refused.

use thiserror::Error;

use super::limits::{Exhausted, MAX_LEVELS, MAX_SCHEMA_LEVELS};

/// The keywords that are supported, as the documentation lists them.
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
#[error("it is not a schema that Trainyard supports: {}{problem}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct SchemaError {
    /// RFC 6901 pointer into the schema.
    pub pointer: String,
    /// What is wrong there.
    pub problem: SchemaProblem,
}

/// What is wrong at a place of a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SchemaProblem {
    /// Neither an object nor a boolean.
    #[error("a schema must be an object, true or false")]
    NotASchema,
    /// A keyword outside of the subset.
    #[error("the keyword `{keyword}` is not supported; the supported ones are {}", KEYWORDS.join(", "))]
    Keyword {
        /// The keyword.
        keyword: String,
    },
    /// The value of a keyword is of another form.
    #[error("`{keyword}` must be {expected}")]
    Form {
        /// The keyword.
        keyword: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A pattern that does not compile, or to more than is allowed.
    #[error("`pattern` is not supported: {0}")]
    Pattern(String),
    /// A reference to something that is not a definition.
    #[error(
        "`$ref` must be `#/$defs/NAME` or `#/definitions/NAME` of a definition at the top of the schema, and is `{0}`"
    )]
    Reference(String),
    /// More of something than allowed.
    #[error("has more than {allowed} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        allowed: u64,
    },
    /// Defaults that grow beyond bounds, in an empty configuration already.
    #[error("an empty configuration {0}")]
    Defaults(Exhausted),
    /// Schemas within schemas, or a schema that refers to itself.
    #[error("schemas nest deeper than {MAX_SCHEMA_LEVELS} levels, or one refers to itself")]
    Levels,
    /// Values within values.
    #[error("the default nests deeper than {MAX_LEVELS} levels")]
    DeepDefault,
}

//! Errors of fields.

use serde_json::Value;
use thiserror::Error;

use crate::{path::FieldPath, yaml};

/// An error of a field.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{path}: {problem}")]
pub struct FieldError {
    /// The field, from the root of its object.
    pub path: FieldPath,
    /// What is wrong with it.
    pub problem: FieldProblem,
}

/// All errors of an object, in the order of reading. Never empty.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct FieldErrors(pub Vec<FieldError>);

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FieldProblem {
    /// A required field is missing.
    #[error("is required")]
    Required,
    /// The value has the wrong type.
    #[error("must be {expected}; found {found}{}", if needs_quotes(expected, found) { "; quote it" } else { "" })]
    Type {
        /// The required type, with its article.
        expected: &'static str,
        /// The value found, such as `the string "two"`.
        found: String,
    },
    /// The field does not exist.
    #[error("unknown field; valid fields are {}", .known.join(", "))]
    Unknown {
        /// The fields that exist there.
        known: &'static [&'static str],
    },
    /// Trainyard does not support the field yet.
    #[error("is not supported yet; remove it")]
    NotSupported,
    /// A value that does not have the type in the schema, which should have refused it.
    #[error("{0}")]
    Mistyped(String),
    /// A value that is not in the list of allowed values.
    #[error("must be one of {}; found {found:?}", .known.join(", "))]
    NotOneOf {
        /// The values that are allowed.
        known: &'static [&'static str],
        /// The value.
        found: String,
    },
    /// A string with the wrong form.
    #[error("must be {form}; found {found:?}")]
    Form {
        /// A description of the form.
        form: &'static str,
        /// The text.
        found: String,
    },
    /// The name of another item of the same list.
    #[error("the name {0:?} is a duplicate; names in this list are unique")]
    Duplicate(String),
    /// Two fields that exclude each other.
    #[error("must not be set together with {0}; remove one of the two")]
    Excludes(&'static str),
    /// Two fields with the same meaning and different values.
    #[error("differs from {0}; set only one of the two")]
    Differs(FieldPath),
    /// A list or map with too many members.
    #[error("has {found} {what}, but at most {limit} are allowed; {remedy}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The maximum.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// A string that should contain JSON.
    #[error("must be JSON; line {}, column {}: {}", .0.line, .0.column, .0.kind)]
    Json(yaml::Error),
}

impl FieldProblem {
    /// Returns the error of the field at `path`.
    #[must_use]
    pub fn at(self, path: FieldPath) -> FieldError {
        FieldError {
            path,
            problem: self,
        }
    }

    /// Returns whether YAML may have parsed a plain scalar as another type than a string.
    pub(crate) fn needs_quotes(&self) -> bool {
        matches!(self, Self::Type { expected, found } if needs_quotes(expected, found))
    }
}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

fn needs_quotes(expected: &str, found: &str) -> bool {
    let mut words = ["the boolean", "the integer", "the number"].iter();
    expected == A_STRING && words.any(|word| found.starts_with(word))
}

/// The type of strings in messages.
pub(super) const A_STRING: &str = "a string";

/// Describes a value for an error: `the string "two"`, `the integer 5`, `a list`.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) if number.is_f64() => format!("the number {number}"),
        Value::Number(number) => format!("the integer {number}"),
        Value::String(text) => format!("the string {:?}", cut(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Shortens a string for a message.
pub(crate) fn cut(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

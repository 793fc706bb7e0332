//! What can be wrong with a field.

use serde_json::Value;
use thiserror::Error;

use crate::path::FieldPath;
use crate::yaml;

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{path}: {problem}")]
pub struct FieldError {
    /// The field, from the root of its object.
    pub path: FieldPath,
    /// What is wrong with it.
    pub problem: FieldProblem,
}

/// All that is wrong with one object, in the order of reading. Never empty.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct FieldErrors(pub Vec<FieldError>);

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FieldProblem {
    /// The field must be there.
    #[error("is required")]
    Required,
    /// The value has another type.
    #[error("must be {expected}, is {found}{}", remedy(expected, found))]
    Type {
        /// The type it must have, with its article.
        expected: &'static str,
        /// The value that it has, in words: `the string "two"`.
        found: String,
    },
    /// No such field exists.
    #[error("unknown field; known are {}", .known.join(", "))]
    Unknown {
        /// The fields that exist there.
        known: &'static [&'static str],
    },
    /// Trainyard knows the field and does not read it yet.
    #[error("not supported yet: remove it")]
    NotSupported,
    /// A count below 1.
    #[error("must be at least 1, is {0}")]
    NoCount(i64),
    /// A value outside a closed list.
    #[error("must be one of {}, is {found:?}", .known.join(", "))]
    NotOneOf {
        /// The values that are allowed.
        known: &'static [&'static str],
        /// The value.
        found: String,
    },
    /// Text of the wrong form.
    #[error("must be {form}, is {found:?}")]
    Form {
        /// The form in words.
        form: &'static str,
        /// The text.
        found: String,
    },
    /// A name that another item of the same list has.
    #[error("the name {0:?} is here a second time: names are unique in this list")]
    Duplicate(String),
    /// Two fields that exclude one another.
    #[error("may not be set beside {0}")]
    Excludes(&'static str),
    /// Two fields that say the same must not differ.
    #[error("differs from {0}: set one of the two")]
    Differs(FieldPath),
    /// A list or map with more members than are read.
    #[error("has {found} {what}, but at most {limit} are allowed; {remedy}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The most that are read.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// A field that holds JSON as text, and does not.
    #[error("must be JSON: line {}, column {}: {}", .0.line, .0.column, .0.kind)]
    Json(yaml::Error),
}

/// YAML's reading of a bare word is the usual reason why text is none.
fn remedy(expected: &str, found: &str) -> &'static str {
    let word = ["the boolean", "the integer", "the number"]
        .iter()
        .any(|word| found.starts_with(word));
    if expected == A_STRING && word {
        ": quote it"
    } else {
        ""
    }
}

/// The type of text in a message.
pub(super) const A_STRING: &str = "a string";

/// A value in words, for an error: `the string "two"`, `the integer 5`, `a list`.
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

/// Text short enough for a message.
pub(crate) fn cut(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

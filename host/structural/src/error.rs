//! Errors of schemas.

use trainyard_text::FieldPath;

/// A schema that an API server refuses, or that this crate does not support. The path is one in the schema, such as
/// `properties[spec].properties[image].maxLength`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// A keyword that structural schemas do not have.
    #[error("{path}: unknown keyword {keyword:?}; remove it or correct its spelling")]
    UnknownKeyword {
        /// The schema with the keyword.
        path: FieldPath,
        keyword: String,
    },
    /// A keyword that an API server, or this crate, refuses here.
    #[error("{path}: {reason}")]
    Refused {
        /// The keyword.
        path: FieldPath,
        /// Why it is refused, and what to write instead.
        reason: String,
    },
    /// The value of a keyword has the wrong type.
    #[error("{path}: must be {expected}")]
    WrongValue {
        /// The keyword.
        path: FieldPath,
        /// The type that is required.
        expected: &'static str,
    },
    /// A pattern is not a regular expression.
    #[error("{path}: the pattern {pattern:?} is not a valid regular expression")]
    Pattern {
        /// The keyword.
        path: FieldPath,
        pattern: String,
        /// Why it does not compile.
        source: Box<regex::Error>,
    },
    /// A CEL rule, or its message expression, does not compile.
    #[error("{path}: the rule {rule:?} does not compile: {problem}")]
    Rule {
        /// The rule.
        path: FieldPath,
        /// The expression.
        rule: String,
        /// Why it does not compile.
        problem: String,
    },
    /// A default violates its own schema.
    #[error("{path}: the default violates its own schema: {problem}")]
    Default {
        /// The keyword.
        path: FieldPath,
        /// What is wrong with it.
        problem: String,
    },
}

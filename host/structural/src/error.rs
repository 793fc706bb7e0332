//! What makes a schema unusable.

use trainyard_text::FieldPath;

/// A schema that an API server would not take, or that is not understood; the path is that of the place in the schema:
/// `properties[spec].properties[image].maxLength`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// A keyword that no structural schema has, often a typing error.
    #[error(
        "{path}: a structural schema has no keyword {keyword:?}; remove it or correct its spelling"
    )]
    UnknownKeyword {
        /// Where the keyword stands.
        path: FieldPath,
        /// The keyword.
        keyword: String,
    },
    /// A keyword that is known, and that an API server, or this crate, refuses here.
    #[error("{path}: {reason}")]
    Refused {
        /// Where it stands.
        path: FieldPath,
        /// Why it is refused, and what to write instead.
        reason: String,
    },
    /// A keyword has a value of another type than it must have.
    #[error("{path}: must be {expected}")]
    WrongValue {
        /// Where the value stands.
        path: FieldPath,
        /// What it must be.
        expected: &'static str,
    },
    /// A pattern is no regular expression.
    #[error("{path}: the pattern {pattern:?} is no regular expression")]
    Pattern {
        /// Where the pattern stands.
        path: FieldPath,
        /// The pattern.
        pattern: String,
        /// Why.
        source: Box<regex::Error>,
    },
    /// A CEL rule, or the expression of its message, does not compile.
    #[error("{path}: the rule {rule:?} does not compile: {problem}")]
    Rule {
        /// Where the rule stands.
        path: FieldPath,
        /// The expression.
        rule: String,
        /// Why it does not compile.
        problem: String,
    },
    /// A default breaks the schema that it stands in.
    #[error("{path}: the default breaks its own schema: {problem}")]
    Default {
        /// Where the default stands.
        path: FieldPath,
        /// What is wrong with it.
        problem: String,
    },
}

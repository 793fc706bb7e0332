//! What an object is refused for, in an API server's words.

use crate::go;
use crate::stack_path::StackPath;
use serde_json::Value;
use std::fmt;
use trainyard_text::FieldPath;

/// One reason for which an API server refuses an object.
///
/// Printed as an API server prints it: `spec.numNodes: Invalid value: -1: spec.numNodes in body should be ...`. Only where the
/// server knows no field, and writes `<nil>` in its place, nothing stands in front; [`Violation::field`] is what the server
/// writes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field that is wrong.
    pub path: FieldPath,
    /// What kind of wrong it is.
    pub kind: ViolationKind,
    /// The value as the server shows it; nothing where the server shows none.
    pub value: Option<String>,
    /// What is wrong with it, in words; may be empty.
    pub detail: String,
    /// Whether the server reports this one without a field although it is about one.
    pathless: bool,
}

/// The kinds of [`Violation`], as an API server's field errors have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// A field that must be there is absent.
    Required,
    /// The value breaks a limit, a pattern or a rule.
    Invalid,
    /// The value is of another type.
    WrongType,
    /// The value is not one of those that are allowed.
    NotSupported,
    /// An item, or its key, stands in the list already.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
}

/// What an API server says of the rules of an object that has other violations.
const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; \
     correct the existing errors to complete validation";

impl ViolationKind {
    /// The words with which an API server starts its sentence.
    pub fn label(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::WrongType => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    /// Whether an API server checks no CEL rule of an object that has a violation of this kind.
    pub fn stops_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::WrongType
        )
    }
}

impl Violation {
    /// The field as an API server names it in the causes of its answer: `<nil>` where it knows none.
    pub fn field(&self) -> String {
        if self.pathless || self.path.is_root() {
            "<nil>".to_owned()
        } else {
            self.path.to_string()
        }
    }

    /// The sentence without the field.
    pub fn body(&self) -> String {
        let mut body = self.kind.label().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(value);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    pub(crate) fn new(at: &StackPath<'_>, kind: ViolationKind, detail: impl Into<String>) -> Self {
        Self {
            path: at.path(),
            kind,
            value: None,
            detail: detail.into(),
            pathless: false,
        }
    }

    pub(crate) fn invalid(at: &StackPath<'_>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(at, ViolationKind::Invalid, detail).showing(go::shown(value))
    }

    pub(crate) fn required(at: &StackPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(at, ViolationKind::Required, detail)
    }

    /// A violation that the server reports without a field, though its words name one.
    pub(crate) fn pathless(at: &StackPath<'_>, detail: impl Into<String>) -> Self {
        let mut violation =
            Self::new(at, ViolationKind::Invalid, detail).showing("\"\"".to_owned());
        violation.pathless = true;
        violation
    }

    pub(crate) fn showing(mut self, value: String) -> Self {
        self.value = Some(value);
        self
    }

    /// Whether it says no more than that rules were left out because of the other violations.
    pub fn is_of_unchecked_rules(&self) -> bool {
        self.detail == RULES_NOT_CHECKED
    }

    /// That the rules were left out, since the values are not even of the right types.
    pub(crate) fn rules_not_checked() -> Self {
        Self::new(&StackPath::ROOT, ViolationKind::Invalid, RULES_NOT_CHECKED)
            .showing("null".to_owned())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            f.write_str(&self.body())
        } else {
            write!(f, "{}: {}", self.path, self.body())
        }
    }
}

impl std::error::Error for Violation {}

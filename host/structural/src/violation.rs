//! Violations of a schema, in an API server's words.

use std::fmt;

use serde_json::Value;
use trainyard_text::{FieldPath, StackPath};

use crate::go;

/// One reason for which an API server refuses an object.
///
/// It is printed as an API server prints it: `spec.numNodes: Invalid value: -1: spec.numNodes in body should be ...`. A server prints
/// `<nil>` if it knows no field; here no field is printed then. [`Violation::field`] returns what the server prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field.
    pub path: FieldPath,
    /// The kind of violation.
    pub kind: ViolationKind,
    /// The value as the server prints it; `None` if the server does not print it.
    pub value: Option<String>,
    /// What is wrong with the field; may be empty.
    pub detail: String,
    /// Whether the server reports the violation without its field.
    pathless: bool,
}

/// The kinds of [`Violation`], which are the types of an API server's field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// A required field is missing.
    Required,
    /// The value violates a limit, a pattern or a rule.
    Invalid,
    /// The value has the wrong type.
    WrongType,
    /// The value is not one of the enum.
    NotSupported,
    /// The item, or its key, is in the list twice.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
}

/// What an API server reports if an object has violations because of which its rules are not evaluated.
const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; \
     correct the existing errors to complete validation";

impl ViolationKind {
    /// Returns the words with which an API server's message starts.
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

    /// Returns whether an API server evaluates no CEL rule of an object with a violation of this kind.
    pub fn stops_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::WrongType
        )
    }
}

impl Violation {
    /// Returns the field as an API server names it in the causes of its answer; `<nil>` if it knows none.
    pub fn field(&self) -> String {
        if self.pathless || self.path.is_root() {
            "<nil>".to_owned()
        } else {
            self.path.to_string()
        }
    }

    /// Returns the message without the field.
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

    /// A violation that the server reports without a field, although its message names one.
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

    /// Returns whether it only reports that rules were not evaluated because of the other violations.
    pub fn is_rules_not_checked(&self) -> bool {
        self.detail == RULES_NOT_CHECKED
    }

    /// Reports that the rules were not evaluated because of the other violations.
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

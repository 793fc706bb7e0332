//! The answer of an API server.

use std::{error::Error, fmt};

use http::{HeaderValue, StatusCode};
use serde_json::Value;

/// The answer to one call, successful or not.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The texts of the warnings, in the server's order.
    pub warnings: Vec<String>,
    /// The object, or the `Status` with the error.
    pub body: Value,
}

/// The error of an API server that refused a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// The reason, such as `Invalid`.
    pub reason: String,
    /// The whole message.
    pub message: String,
    /// The causes, in the server's order.
    pub causes: Vec<Cause>,
}

/// One error of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// The field's path; `<nil>` if the server names none.
    pub field: String,
    /// The message without the field.
    pub message: String,
}

impl Answer {
    /// Returns the object.
    ///
    /// # Errors
    /// The server refused.
    pub fn accepted(self) -> Result<Value, Refusal> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text = |pointer| {
            let text = self.body.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let causes = self.body.pointer("/details/causes");
        Err(Refusal {
            code: self.status.as_u16(),
            reason: text("/reason"),
            message: text("/message"),
            causes: causes
                .and_then(Value::as_array)
                .map(|causes| causes.iter().map(Cause::read).collect())
                .unwrap_or_default(),
        })
    }

    /// Returns the server's error.
    ///
    /// # Errors
    /// The server accepted the call: the object that it returned.
    pub fn refused(self) -> Result<Refusal, Accepted> {
        match self.accepted() {
            Ok(object) => Err(Accepted(object)),
            Err(refusal) => Ok(refusal),
        }
    }
}

/// An object that a server accepted, although it should have refused it.
#[derive(Clone, Debug)]
pub struct Accepted(pub Value);

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the API server accepted what it should refuse: {}",
            self.0
        )
    }
}

impl Error for Accepted {}

impl Cause {
    fn read(cause: &Value) -> Self {
        let text = |key| {
            let text = cause.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            field: text("field"),
            message: text("message"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl Error for Refusal {}

/// Returns the text of a `Warning` header: `299 - "text"`, in which `"` and `\` are escaped.
pub(crate) fn warning(header: &HeaderValue) -> Option<String> {
    let header = String::from_utf8_lossy(header.as_bytes());
    let quoted = header.split_once('"')?.1.rsplit_once('"')?.0;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            _ => text.push(character),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_without_their_escapes() {
        let header = HeaderValue::from_static(r#"299 - "unknown field \"spec.a\\b\"""#);
        assert_eq!(
            warning(&header).as_deref(),
            Some(r#"unknown field "spec.a\b""#)
        );
        assert_eq!(warning(&HeaderValue::from_static("299 -")), None);
    }
}

use std::sync::Arc;

use serde_json::Value;

/// Identifies a container of a record. Ids are not reused, so a handle to a removed container is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(pub u32);

/// The value of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A text: an image, a label, the plain value of an env var, a quantity.
    Text(Arc<str>),
    /// A list of texts: a command, arguments.
    List(Arc<[Arc<str>]>),
    /// A whole number: a count.
    Integer(i64),
    /// Kubernetes JSON as its author wrote it: a volume, a port, a mount, the `valueFrom` of an env var.
    Json(Arc<Value>),
    /// A container.
    Container(ContainerId),
}

impl Datum {
    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Arc<str>]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The JSON, if it is one.
    #[must_use]
    pub fn as_json(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Json(value) => Some(value),
            _ => None,
        }
    }

    /// The value as JSON, for messages and for the JobSet. `None` for a container.
    #[must_use]
    pub fn to_json(&self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(Value::from(&**text)),
            Self::List(list) => Some(list.iter().map(|item| Value::from(&**item)).collect()),
            Self::Integer(number) => Some(Value::from(*number)),
            Self::Json(value) => Some((**value).clone()),
            Self::Container(_) => None,
        }
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<Value> for Datum {
    fn from(value: Value) -> Self {
        Self::Json(Arc::new(value))
    }
}

impl<T: AsRef<str>> From<&[T]> for Datum {
    fn from(list: &[T]) -> Self {
        Self::List(list.iter().map(|item| Arc::from(item.as_ref())).collect())
    }
}
